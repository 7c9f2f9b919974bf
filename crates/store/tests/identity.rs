//! Files of the server are written on threads that have the identity of a caller.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::{self, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_backend::{Passthrough, PassthroughOptions};
use comity_grants::{
    Accounts, Binding, Grants, Medium, MediumError, Moment, Record, Revocation, Revoker,
};
use comity_keynote::{AssertionDigest, SignedAssertion, sign};
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_store::{GrantFile, Store};
use comity_vfs::{AsServer, Cred, Disk, Fs, Gid, Name, Uid};
use common::{Tmpfs, engine, meet, server};
use tempfile::TempDir;

/// A directory that is served to callers.
struct Served {
    fs: Passthrough,
    _folder: TempDir,
}

impl Served {
    /// Returns `None` if the process cannot take on the identities of callers.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        let is_able = fs.capabilities().caller_identities;
        if !is_able {
            eprintln!("skipped: only root can take on the identities of callers");
        }
        is_able.then_some(Self { fs, _folder: folder })
    }

    /// Serves a call of an ordinary user, whose identity this thread then has. The user may not use
    /// the state folder.
    fn call_as_user(&self, state_folder: &Path) {
        let name = Name::new(b"none").unwrap();
        self.fs.lookup(&user(), &self.fs.root(), name).unwrap_err();
        let refused = fs::read_dir(state_folder).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::PermissionDenied);
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.fs.release_identity().unwrap();
    }
}

/// Makes a folder that only its owner may use, whatever the umask is.
fn state_folder() -> TempDir {
    let mode = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(mode).tempdir().unwrap()
}

fn user() -> Cred<Disk> {
    Cred::new(Uid::new(1000), Gid::new(1000))
}

/// A file whose first write fails.
struct FailsOnce {
    file: GrantFile,
    writes: AtomicU64,
}

impl Medium for FailsOnce {
    fn store(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        match self.writes.fetch_add(1, Ordering::Relaxed) {
            0 => Err("the disk is full".into()),
            _ => self.file.store(server, records),
        }
    }

    fn replace(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        self.file.replace(server, records)
    }
}

/// Grants in a file of which nothing was written yet, because the first write has failed.
struct Unwritten {
    grants: Grants,
    alice: PrivateKey,
    bob: PrivateKey,
    /// The credential that alice gave bob, which could not be stored.
    text: String,
}

impl Unwritten {
    fn at(path: &Path) -> Self {
        let (file, recovered) = GrantFile::open(&server(), path).unwrap();
        let medium = Box::new(FailsOnce { file, writes: AtomicU64::new(0) });
        let [alice, bob] = [(); 2].map(|()| PrivateKey::generate(Algorithm::Ed25519).unwrap());
        // Each look at the clock takes so long that the pause after a failure is over.
        let clock = Arc::new(AtomicU64::new(0));
        let now = Box::new(move || Moment(clock.fetch_add(60_000, Ordering::Relaxed)));
        let grants = Grants::new(now, medium, recovered);
        let (key, comment) = (*alice.public_key(), String::new());
        let binding = Binding { user: "alice".to_owned(), key, comment };
        grants.bind(Accounts::new(&[binding], |_| Some(user())).0);
        let text = credential(&alice, &bob);
        grants.submit(*bob.public_key(), &text).unwrap_err();
        Self { grants, alice, bob, text }
    }
}

/// A credential that gives a key rights to everything.
fn credential(from: &PrivateKey, to: &PrivateKey) -> String {
    let [from_key, to_key] = [from, to].map(|one| one.public_key().to_keynote());
    let text = format!(
        "KeyNote-Version: 2\nAuthorizer: \"{from_key}\"\nLicensees: \"{to_key}\"\n\
         Conditions: app_domain == \"Comity\" -> \"r\";\n",
    );
    sign(&text, from).unwrap()
}

fn digest(text: &str) -> AssertionDigest {
    *SignedAssertion::parse(text).unwrap().digest()
}

#[test]
fn a_credential_submitted_by_a_user_is_stored_as_the_server_after_a_failure() {
    let (Some(served), folder) = (Served::start(), state_folder()) else { return };
    let path = folder.path().join("grants");
    let Unwritten { grants, bob, text, .. } = Unwritten::at(&path);
    served.call_as_user(folder.path());
    let submitted = grants.submit(*bob.public_key(), &text);
    drop(served);
    submitted.unwrap();
    drop(grants);
    assert_eq!(GrantFile::look(&server(), &path).unwrap().held, [(*bob.public_key(), text)]);
    assert_eq!(path.metadata().unwrap().uid(), 0);
}

#[test]
fn a_revocation_by_a_user_is_stored_as_the_server_after_a_failure() {
    let (Some(served), folder) = (Served::start(), state_folder()) else { return };
    let path = folder.path().join("grants");
    let Unwritten { grants, alice, text, .. } = Unwritten::at(&path);
    served.call_as_user(folder.path());
    let by = Revoker::Key(*alice.public_key());
    let revoked = grants.revoke(by, &Revocation::Text(text.clone()));
    drop(served);
    assert_eq!(revoked.unwrap().len(), 1);
    drop(grants);
    let found = GrantFile::look(&server(), &path).unwrap().revoked;
    let expected = comity_grants::Revoked::Credential(digest(&text));
    assert_eq!(found.iter().map(|one| one.what).collect::<Vec<_>>(), [expected]);
}

#[test]
fn clients_are_stored_again_as_the_server_on_a_thread_of_a_user() {
    let (Some(served), Some(disk)) = (Served::start(), Tmpfs::mount("size=16m,mode=700")) else {
        return;
    };
    let store = Store::open(&server(), &disk.path().join("clients")).unwrap();
    let engine = engine(&store);
    disk.fill();
    let error = (0..10_000).find_map(|number| meet(&store, &engine, number).err());
    assert!(error.is_some() && store.is_broken());
    disk.make_room();
    served.call_as_user(disk.path());
    let repaired = store.repair(&engine);
    drop(served);
    assert!(repaired.unwrap());
}
