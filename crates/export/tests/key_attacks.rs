//! Ways in which a key may try to get more than was granted to it, on a real file system. The list
//! of all attacks is in docs/security.md.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_backend::{Passthrough, PassthroughOptions};
use comity_credential::{Channel, CredentialRef, KeyId, PeerIdentity, PeerKey};
use comity_export::{
    Client, DirectoryClearance, Door, Export, ExportId, HandleKey, KeyUse, Node, Plan, Refusal,
    RpcPeer, Rules, View,
};
use comity_grants::{Accounts, Binding, Grants, Moment, ObjectId, Recovered, Unstored};
use comity_keynote::Grant;
use comity_keys::{Algorithm, PrivateKey, Signer};
use comity_vfs::{Cred, Fs, Gid, Handle, ReadInto, Status, Uid};

const NAMES: DirectoryClearance<'static> = DirectoryClearance::given();
const ALICE: u32 = 1000;
/// The first second of the tests, and the one at which grants end.
const BEGUN: u64 = 1_800_000_000;
const END: u64 = BEGUN + 10;
/// Files made and removed until an inode is used again; ext4 does so at once.
const TRIES: usize = 1000;

/// A folder that is exported twice, as `/srv` and as `/again`, to callers known by their keys.
struct FolderExportedTwice {
    plan: Plan,
    fs: Arc<Passthrough>,
    grants: Arc<Grants>,
    milliseconds: Arc<AtomicU64>,
    alice: PrivateKey,
    bob: PrivateKey,
    folder: tempfile::TempDir,
}

impl Drop for FolderExportedTwice {
    /// Returns this thread to the server's own ids, so that the folder can be removed.
    fn drop(&mut self) {
        self.fs.release_identity().unwrap();
    }
}

impl FolderExportedTwice {
    /// Returns the site if the test may act as other users.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let fs = Passthrough::open(folder.path(), PassthroughOptions::default()).unwrap();
        let fs = Arc::new(fs);
        let milliseconds = Arc::new(AtomicU64::new(BEGUN * 1000));
        let clock = Arc::clone(&milliseconds);
        let clock = Box::new(move || Moment(clock.load(Ordering::SeqCst)));
        let grants = Arc::new(Grants::new(clock, Box::new(Unstored), Recovered::default()));
        let [alice, bob] = [(); 2].map(|()| PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let (user, comment) = ("alice".to_owned(), String::new());
        let binding = Binding { user, key: *alice.public_key(), comment };
        let ids = Cred::new(Uid::new(ALICE), Gid::new(ALICE));
        grants.bind(Accounts::new(&[binding], |_| Some(ids.clone())).0);
        let rules = Arc::new(Rules { read_only: false, key_use: KeyUse::Only, ..Rules::default() });
        let export = |id, path: &str| {
            let clients = vec![(Client::Everybody, Arc::clone(&rules))];
            Arc::new(Export::new(ExportId(id), path.into(), Arc::clone(&fs) as _, clients))
        };
        let exports = vec![export(1, "/srv"), export(2, "/again")];
        let plan = Plan::new(HandleKey::new([9; 16]), exports);
        let plan = plan.granting(Some(Arc::clone(&grants)));
        Some(Self { plan, fs, grants, milliseconds, alice, bob, folder })
    }

    /// Returns a path in the folder, which this thread may use under the server's own ids from now
    /// on.
    fn path(&self, path: &str) -> PathBuf {
        self.fs.release_identity().unwrap();
        self.folder.path().join(path)
    }

    fn mkdir(&self, path: &str) -> Handle {
        fs::create_dir(self.path(path)).unwrap();
        self.owned(path)
    }

    fn create(&self, path: &str) -> Handle {
        fs::write(self.path(path), "text").unwrap();
        self.owned(path)
    }

    /// Gives an object to Alice; returns its handle.
    fn owned(&self, path: &str) -> Handle {
        chown(self.path(path), Some(ALICE), Some(ALICE)).unwrap();
        comity_backend::handle_of(&self.path(path)).unwrap()
    }

    /// Alice grants Bob rights to an object and what is below it, through `/srv` alone.
    fn grant(&self, object: &Handle, rights: &str) {
        let grant = Grant {
            authorizer: *self.alice.public_key(),
            licensee: *self.bob.public_key(),
            export: Some("/srv".to_owned()),
            object: ObjectId(*object).to_string(),
            rights: rights.parse().unwrap(),
            expires: Some(Moment::from_seconds(END).to_string()),
            is_final: false,
            comment: None,
        };
        let text = grant.sign(&self.alice).unwrap();
        let submitted = self.grants.submit(*self.bob.public_key(), &text).unwrap();
        assert!(submitted[0].outcome.is_held());
    }

    /// Bob enters by a path, or by a handle of one of the exports.
    fn bob(&self, door: Door<'_>) -> Result<(View<'_>, Node), Refusal> {
        let identity = PeerIdentity {
            key: PeerKey::new(&self.bob.public_key().to_spki(), KeyId([0; 32])),
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: u64::MAX,
        };
        let peer = RpcPeer::new("192.0.2.7:700".parse::<SocketAddr>().unwrap());
        let peer = peer.over(Channel::Tls(Some(Arc::new(identity))));
        View::enter(&self.plan, &peer, &CredentialRef::NOBODY, door)
    }

    fn at(&self, path: &str) -> (View<'_>, Node) {
        self.bob(Door::Path(path.as_bytes())).map_err(drop).unwrap()
    }

    fn reads(&self, export: u32, object: &Handle) -> Result<(), Status> {
        let sealed = self.plan.seal(ExportId(export), object);
        match self.bob(Door::Handle(sealed.bytes())) {
            Ok((view, node)) => read(&view, &node),
            Err(Refusal::Status(status)) => Err(status),
            Err(Refusal::Denied(_)) => Err(Status::Perm),
            Err(Refusal::Referred(_)) => Err(Status::Stale),
        }
    }

    fn pass(&self, milliseconds: u64) {
        self.milliseconds.fetch_add(milliseconds, Ordering::SeqCst);
    }
}

fn read(view: &View<'_>, node: &Node) -> Result<(), Status> {
    view.read(node, 0, 1, &mut ReadInto::new(&mut Vec::new())).map(drop)
}

/// Makes `full`, where Bob may do everything, and `poor`, where he may only look up and remove
/// files.
fn two_directories() -> Option<FolderExportedTwice> {
    let site = FolderExportedTwice::new()?;
    let (full, poor) = (site.mkdir("full"), site.mkdir("poor"));
    site.create("poor/file");
    site.grant(&full, "rwxcda");
    site.grant(&poor, "xd");
    Some(site)
}

#[test]
fn no_right_is_gained_by_a_hard_link() {
    let Some(site) = two_directories() else { return };
    let ((view, full), (_, file)) = (site.at("/srv/full"), site.at("/srv/poor/file"));
    assert_eq!(view.link(NAMES, &file, &full, b"mine").unwrap_err(), Status::Acces);
    assert!(!site.path("full/mine").exists());
    // A link that Alice made gives Bob its rights while it exists.
    let handle = *file.handle();
    fs::hard_link(site.path("poor/file"), site.path("full/link")).unwrap();
    let (view, link) = site.at("/srv/full/link");
    assert_eq!(link.handle(), &handle);
    site.pass(1000);
    assert_eq!(read(&view, &link), Ok(()));
    fs::remove_file(site.path("full/link")).unwrap();
    site.pass(1000);
    assert_eq!(read(&view, &link), Err(Status::Acces));
}

#[test]
fn no_right_is_gained_by_a_rename() {
    let Some(site) = two_directories() else { return };
    let ((view, full), (_, poor)) = (site.at("/srv/full"), site.at("/srv/poor"));
    let moved = view.rename(NAMES, (&poor, b"file"), (&full, b"mine"));
    assert_eq!(moved.unwrap_err(), Status::Acces);
    assert!(site.path("poor/file").exists() && !site.path("full/mine").exists());
}

#[test]
fn an_old_handle_gives_no_right_to_a_file_that_got_the_inode() {
    let Some(site) = FolderExportedTwice::new() else { return };
    let (shared, _) = (site.mkdir("shared"), site.mkdir("private"));
    let old = site.create("shared/file");
    site.grant(&shared, "r");
    site.grant(&old, "rw");
    assert_eq!(site.reads(1, &old), Ok(()));
    let inode = fs::metadata(site.path("shared/file")).unwrap().ino();
    fs::remove_file(site.path("shared/file")).unwrap();
    // The server closes removed files once a second.
    site.fs.release_removed();
    for number in 0..TRIES {
        let path = format!("private/{number}");
        let new = site.create(&path);
        if fs::metadata(site.path(&path)).unwrap().ino() == inode {
            assert_ne!(new, old);
            assert_eq!(site.reads(1, &old), Err(Status::Stale));
            assert_eq!(site.reads(1, &new), Err(Status::Stale));
            return;
        }
    }
    eprintln!("skipped: the file system did not use an inode again");
}

#[test]
fn a_grant_for_one_export_gives_nothing_by_another_export_of_the_same_files() {
    let Some(site) = FolderExportedTwice::new() else { return };
    let shared = site.mkdir("shared");
    let file = site.create("shared/file");
    site.grant(&shared, "rx");
    assert_eq!(site.reads(1, &file), Ok(()));
    assert_eq!(site.reads(2, &file), Err(Status::Stale));
    let door = Door::Path(b"/again/shared");
    assert!(matches!(site.bob(door), Err(Refusal::Status(Status::NoEnt))));
}

#[test]
fn a_cached_pass_ends_with_its_grant() {
    let Some(site) = FolderExportedTwice::new() else { return };
    let shared = site.mkdir("shared");
    site.create("shared/file");
    site.grant(&shared, "rx");
    let (view, file) = site.at("/srv/shared/file");
    site.pass((END - BEGUN) * 1000 - 1);
    // The second read uses the cached decision, which would be kept for a second.
    assert_eq!((read(&view, &file), read(&view, &file)), (Ok(()), Ok(())));
    site.pass(1);
    assert_eq!(read(&view, &file), Err(Status::Stale));
}
