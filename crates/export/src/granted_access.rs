use comity_credential::Grantee;
use comity_grants::Operation;
use comity_vfs::{Access, FileKey, Result, Status};

use crate::key_identity::key_caller;
use crate::reasons::at_scene;
use crate::{ExportId, Plan, Rules};

/// The access for which a file is opened, and the corresponding operations.
const ACCESS: [(Access, Operation); 3] = [
    (Access::READ, Operation::Read),
    (Access::MODIFY, Operation::Write),
    (Access::EXECUTE, Operation::Search),
];

impl Plan {
    /// Returns the access to a file that the grants of a key allow now, for state that rests on
    /// them: none if the file or the export is gone. A key that acted by an account has all access
    /// as long as it is bound to the same user, and none afterwards. The result must not be used to
    /// admit a caller.
    ///
    /// # Errors
    /// [`Status`] if the directories above the file cannot be found.
    pub fn granted_access(&self, file: &FileKey, grantee: &Grantee) -> Result<Access> {
        let export = self.export(ExportId(grantee.export));
        if let Some(user) = &grantee.user {
            let accounts = self.grants().map(|grants| grants.accounts());
            let account = accounts.as_ref().and_then(|accounts| accounts.get(&grantee.key));
            let is_bound = account.is_some_and(|account| account.user == **user);
            return Ok(if is_bound { Access::ALL } else { Access::NONE });
        }
        let Some((export, grants)) = export.zip(self.grants()) else { return Ok(Access::NONE) };
        let caller = key_caller(export, (grantee.key, grantee.address), &Rules::default());
        let mut granted = Access::NONE;
        for (access, operation) in ACCESS {
            let object = &file.handle;
            match at_scene(export, |scene| grants.allows(&caller, scene, object, operation)) {
                Ok(true) => granted = granted | access,
                Ok(false) | Err(Status::Stale) => {}
                Err(why) => return Err(why),
            }
        }
        Ok(granted)
    }
}
