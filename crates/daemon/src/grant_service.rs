//! The grants of keys: loaded at the start, stored in the state folder, and checked each second.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use comity_grants::{Accounts, Binding, Grants, Moment, NoIds, RightsClock, ServerKey};
use comity_keys::PublicKey;
use comity_server::blocking_hook;
use comity_store::GrantFile;
use comity_vfs::{AsServer, Cred, Disk};
use nix::errno::Errno;

use crate::clocks::{ClockId, milliseconds};
use crate::options::Options;
use crate::user_ids::cred_of;

/// The file of credentials and revocations, in the state folder.
pub(crate) const GRANTS: &str = "grants";

/// The accounts file in the state folder, which `comity account` writes.
const ACCOUNTS: &str = "accounts";

/// The accounts and the grants.
pub(crate) struct GrantService {
    grants: Arc<Grants>,
    /// The accounts file in the state folder.
    own: PathBuf,
    /// Accounts files that the configuration names.
    others: Vec<PathBuf>,
    /// Locked while the accounts are changed.
    turn: Mutex<()>,
    /// True once the log reports that the file of grants cannot be written.
    failing: AtomicBool,
    look_up: LookUp,
}

/// Looks up the ids of a user.
type LookUp = fn(&str) -> Result<Option<Cred<Disk>>, Errno>;

impl GrantService {
    /// Loads the stored grants and the accounts. `key` signs the credentials for creators.
    ///
    /// # Errors
    /// The state folder or an accounts file cannot be read; the error says what to do.
    pub(crate) fn open(options: &Options, key: ServerKey) -> Result<Self> {
        let file = &options.state_folder.join(GRANTS);
        let (file, recovered) = GrantFile::open(&AsServer::here()?, file)?;
        let clock = clock(recovered.seen);
        let grants = Grants::new(clock, Box::new(file), recovered).signing(key);
        let grants = grants.blocking(blocking_hook);
        let grants = Arc::new(grants.keeping(options.decisions_per_key));
        let (own, others) = (options.state_folder.join(ACCOUNTS), options.accounts.clone());
        let (turn, failing) = (Mutex::default(), AtomicBool::default());
        let service = Self { grants, own, others, turn, failing, look_up: cred_of };
        service.reload()?;
        Ok(service)
    }

    pub(crate) fn grants(&self) -> Arc<Grants> {
        Arc::clone(&self.grants)
    }

    /// Reads the accounts files again.
    ///
    /// # Errors
    /// One of them cannot be read; the accounts then stay the same.
    pub(crate) fn reload(&self) -> Result<()> {
        let (_turn, server) = self.take_turn()?;
        self.bind(&server, &read(&server, &self.own)?)
    }

    /// Binds a key to a user, and stores the binding.
    ///
    /// # Errors
    /// The user is unknown, or the file cannot be written.
    pub(crate) fn add(&self, binding: Binding) -> Result<()> {
        let (_turn, server) = self.take_turn()?;
        (self.look_up)(&binding.user)
            .with_context(|| format!("the user {} cannot be looked up now", binding.user))?
            .with_context(|| format!("this machine knows no user {}", binding.user))?;
        let mut own = read(&server, &self.own)?;
        own.retain(|other| other.key != binding.key);
        own.push(binding);
        write(&server, &self.own, &own)?;
        self.bind(&server, &own)
    }

    /// Removes the binding of a key, and stores that.
    ///
    /// # Errors
    /// The key has no binding here, or the file cannot be written.
    pub(crate) fn remove(&self, key: &PublicKey) -> Result<()> {
        let (_turn, server) = self.take_turn()?;
        let mut own = read(&server, &self.own)?;
        let before = own.len();
        own.retain(|binding| binding.key != *key);
        if own.len() == before {
            bail!("the key is bound to no user in {}", self.own.display());
        }
        write(&server, &self.own, &own)?;
        self.bind(&server, &own)
    }

    /// The bindings in the accounts file of the state folder.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn bindings(&self) -> Result<Vec<Binding>> {
        read(&AsServer::here()?, &self.own)
    }

    /// Locks the accounts for a change under the server's own identity.
    fn take_turn(&self) -> Result<(MutexGuard<'_, ()>, AsServer)> {
        Ok((self.turn.lock().unwrap_or_else(PoisonError::into_inner), AsServer::here()?))
    }

    /// Forgets what has expired, and stores new creations.
    pub(crate) fn pass(&self) {
        // A failure is logged by `tell_storage`.
        let _ = self.grants.expire();
        let _ = self.grants.store_creations();
        self.tell_storage();
    }

    /// Stores everything that is not stored yet, when the server ends.
    pub(crate) fn end(&self) {
        if let Err(error) = self.grants.store_at_end() {
            tracing::error!(%error, "creators of objects cannot be stored; a restart forgets them");
        }
    }

    /// Logs once that the file of grants cannot be written, and once that it can be written again.
    fn tell_storage(&self) {
        let failure = self.grants.storage_failure();
        let was_failing = self.failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(error) if !was_failing => tracing::error!(
                error,
                "{GRANTS} in the state folder cannot be written, so no credential is accepted \
                 or revoked: see to its room and its permissions; it is tried again, at last \
                 once a minute"
            ),
            None if was_failing => tracing::warn!("{GRANTS} in the state folder is written again"),
            _ => {}
        }
    }

    fn bind(&self, server: &AsServer, own: &[Binding]) -> Result<()> {
        let mut all = own.to_vec();
        for file in &self.others {
            all.extend(read(server, file)?);
        }
        let before = self.grants.accounts();
        let (accounts, without) = Accounts::looked_up(&all, &before, self.look_up);
        for (Binding { user, key, .. }, why) in without {
            match why {
                NoIds::NoUser => {
                    tracing::warn!(user, %key, "a key is bound to a user that is unknown here");
                }
                NoIds::Failed(error) => tracing::error!(
                    user, %key, %error,
                    "a user cannot be looked up: the key keeps the account that it has, if any; \
                     see to the services of nsswitch.conf, then `comity reload`"
                ),
            }
        }
        self.grants.bind(accounts);
        Ok(())
    }
}

/// A clock that never shows a moment before `seen`.
fn clock(seen: Moment) -> comity_grants::TellMoment {
    // Rights are read with each call, and the coarse clocks of the kernel cost a quarter of the
    // fine ones. They stand still for up to ten milliseconds.
    let begun = milliseconds(ClockId::CLOCK_MONOTONIC_COARSE);
    let clock = RightsClock::after(seen, 0);
    Box::new(move || {
        let system = milliseconds(ClockId::CLOCK_REALTIME_COARSE);
        clock.now(milliseconds(ClockId::CLOCK_MONOTONIC_COARSE).saturating_sub(begun), system)
    })
}

/// Reads an accounts file; a missing one is empty.
fn read(_: &AsServer, path: &Path) -> Result<Vec<Binding>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read the accounts in {}", path.display()))?,
    };
    Binding::read_all(&text).map_err(|bad| anyhow!("{}, {bad}", path.display()))
}

/// Writes the accounts file: first a complete copy on stable storage, which then gets its name.
fn write(_: &AsServer, path: &Path, bindings: &[Binding]) -> Result<()> {
    use std::io::Write;
    let failed = || format!("cannot write the accounts to {}", path.display());
    let draft = path.with_extension("new");
    let mut text = String::from("# Keys of users, written by `comity account`.\n");
    bindings.iter().for_each(|binding| text += &format!("{}\n", binding.line()));
    let mut file = fs::File::create(&draft).with_context(failed)?;
    file.write_all(text.as_bytes()).with_context(failed)?;
    file.sync_all().with_context(failed)?;
    fs::rename(&draft, path).with_context(failed)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)
}

#[cfg(test)]
mod tests {
    use comity_grants::{Recovered, TellMoment};
    use comity_keys::{Algorithm, PrivateKey, Signer};
    use comity_vfs::{Gid, Uid};

    use super::*;

    fn service(folder: &Path) -> GrantService {
        let (file, _) = GrantFile::open(&AsServer::here().unwrap(), &folder.join(GRANTS)).unwrap();
        let now: TellMoment = Box::new(|| Moment(0));
        GrantService {
            grants: Arc::new(Grants::new(now, Box::new(file), Recovered::default())),
            own: folder.join(ACCOUNTS),
            others: Vec::new(),
            turn: Mutex::default(),
            failing: AtomicBool::default(),
            look_up: |_| Ok(Some(Cred::new(Uid::new(1000), Gid::new(100)))),
        }
    }

    #[test]
    fn a_reload_while_users_cannot_be_looked_up_keeps_accounts() {
        let folder = tempfile::tempdir().unwrap();
        let mut service = service(folder.path());
        let key = *PrivateKey::generate(Algorithm::Ed25519).unwrap().public_key();
        let (user, comment) = ("alice".to_owned(), String::new());
        service.add(Binding { user, key, comment }).unwrap();
        service.look_up = |_| Err(Errno::EIO);
        service.reload().unwrap();
        assert!(service.grants.accounts().get(&key).is_some());
        service.look_up = |_| Ok(None);
        service.reload().unwrap();
        assert!(service.grants.accounts().get(&key).is_none());
    }
}
