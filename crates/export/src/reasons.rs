//! The reasons of the rights of keys, as text.

use std::net::IpAddr;
use std::path::{Component, Path};

use comity_grants::{Grants, KeyCaller, Operation, Scene, Tree};
use comity_keys::PublicKey;
use comity_vfs::{Cred, Handle, Name, Result, Status};

use crate::key_identity::key_caller;
use crate::{Export, KeyUse, Plan, Rules};

/// Explains which rights a key has to an object for an operation, or for all operations, and why.
///
/// # Errors
/// [`Status`] if the directories above the object cannot be found.
pub(crate) fn reasons(
    grants: &Grants,
    caller: &KeyCaller,
    (scene, object): (&Scene<'_>, &Handle),
    operation: Option<Operation>,
) -> Result<String> {
    if let Some(account) = grants.accounts().get(&caller.key) {
        let user = &account.user;
        return Ok(format!("key {} acts as user {user}: the file system decides\n", caller.key));
    }
    let all = Operation::ALL.into_iter();
    let asked = all.filter(|one| operation.is_none_or(|operation| operation == *one));
    asked.map(|one| grants.why(caller, scene, object, one)).collect()
}

/// Calls `ask` for an object of an export.
pub(crate) fn at_scene<T>(export: &Export, ask: impl FnOnce(&Scene<'_>) -> T) -> T {
    let key = |handle: &Handle| export.key(handle);
    let tree = Tree { fs: &**export.fs(), key: &key };
    let (number, path) = (export.id().0, export.path_text());
    ask(&Scene { number, path, tree, policy: export.policy() })
}

impl Plan {
    /// Explains to the administrator which rights a key has to the object at a path of this
    /// machine, and why, as if it called from an address.
    ///
    /// # Errors
    /// [`Status::NoEnt`] if no export contains the object, [`Status::NotSupp`] if the server does
    /// not support keys; [`Status`].
    pub fn why(
        &self,
        path: &Path,
        (key, from): (&PublicKey, IpAddr),
        operation: Option<Operation>,
    ) -> Result<String> {
        let grants = self.grants().ok_or(Status::NotSupp)?;
        let exports = self.exports().iter().filter(|export| path.starts_with(export.path()));
        let export = exports.max_by_key(|export| export.path().components().count());
        let export = export.ok_or(Status::NoEnt)?;
        let below = path.strip_prefix(export.path()).map_err(|_| Status::NoEnt)?;
        if let Some(referral) = export.referral() {
            return Ok(format!("NFSv4 clients are referred to other servers: {referral}\n"));
        }
        let object = walk(export, below)?;
        let takes_keys = |rules: &&Rules| rules.key_use != KeyUse::AccountsOnly;
        let rules = export.clients().iter().map(|(_, rules)| &**rules).find(takes_keys);
        let rules = rules.ok_or(Status::Acces)?;
        let caller = key_caller(export, (*key, from), rules);
        at_scene(export, |scene| reasons(grants, &caller, (scene, &object), operation))
    }
}

/// Walks down from the root of an export with the server's rights, without following links.
fn walk(export: &Export, below: &Path) -> Result<Handle> {
    use std::os::unix::ffi::OsStrExt;
    let server = Cred::root();
    let mut here = export.fs().root();
    for component in below.components() {
        let Component::Normal(name) = component else { return Err(Status::Inval) };
        let name = Name::new(name.as_bytes())?;
        here = export.fs().lookup(&server, &here, name)?.node.handle;
    }
    Ok(here)
}
