//! Callers who have proved a key: their rights, and the ids under which they act.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_backend::{Memory, MemoryOptions};
use comity_cloak::{CloakEntry, Owned};
use comity_credential::{Channel, CredentialRef, Gate, KeyId, PeerIdentity, PeerKey};
use comity_export::{
    Clearance, Client, Cloak, Door, Export, ExportId, Exports, HandleKey, KeyUse, Node, Plan,
    Refusal, RpcPeer, Rules, View,
};
use comity_grants::{
    Accounts, Binding, FetchError, Grants, Moment, ObjectId, Recovered, ServerKey, Unstored,
};
use comity_idmap::Range;
use comity_keynote::sign;
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use comity_vfs::{
    Access, AclKind, Create, Cred, Disk, Fs, Gid, Handle, Listed, Mode, Name, ReadInto, Seek,
    SetAttr, Special, Status, Uid, XattrMode,
};

const CLEAR: Clearance = Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

/// The ids of Alice, who has an account.
const ALICE: u32 = 1000;

/// An export whose callers are known by their keys. `/srv/shared` and all in it are Alice's.
struct KeyedExport {
    plan: Plan,
    fs: Arc<Memory>,
    grants: Arc<Grants>,
    now: Arc<AtomicU64>,
    alice: PrivateKey,
    bob: PrivateKey,
}

fn cred(uid: u32) -> Cred<Disk> {
    Cred::new(Uid::new(uid), Gid::new(uid))
}

fn name(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

impl KeyedExport {
    fn new(key_use: KeyUse) -> Self {
        Self::under(Rules { read_only: false, key_use, ..Rules::default() })
    }

    fn under(rules: Rules) -> Self {
        let root_mode = Mode::new(0o777);
        let options = MemoryOptions { root_mode, ..MemoryOptions::default() };
        let fs = Arc::new(Memory::new(options).unwrap());
        let now = Arc::new(AtomicU64::new(1_800_000_000_000));
        let clock = Arc::clone(&now);
        let clock = Box::new(move || Moment(clock.load(Ordering::SeqCst)));
        let signs = ServerKey::new(PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let grants = Grants::new(clock, Box::new(Unstored), Recovered::default()).signing(signs);
        let grants = Arc::new(grants);
        let [alice, bob] = [(); 2].map(|()| PrivateKey::generate(Algorithm::Ed25519).unwrap());
        let user = "alice".to_owned();
        let binding = Binding { user, key: *alice.public_key(), comment: String::new() };
        grants.bind(Accounts::new(&[binding], |_| Some(cred(ALICE))).0);
        let clients = vec![(Client::Everybody, Arc::new(rules))];
        let export = Export::new(ExportId(1), "/srv".into(), Arc::clone(&fs) as _, clients);
        let plan = Plan::new(HandleKey::new([9; 16]), vec![Arc::new(export)]);
        let plan = plan.granting(Some(Arc::clone(&grants)));
        Self { plan, fs, grants, now, alice, bob }
    }

    fn mkdir(&self, dir: &Handle, called: &str) -> Handle {
        let set = SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() };
        self.fs.mkdir(&cred(ALICE), dir, name(called), &set).unwrap().value.handle
    }

    fn create(&self, dir: &Handle, called: &str) -> Handle {
        let set = SetAttr { mode: Some(Mode::new(0o644)), ..SetAttr::default() };
        let how = Create::Guarded(set);
        self.fs.create(&cred(ALICE), dir, name(called), &how).unwrap().value.handle
    }

    /// Alice grants Bob rights to an object and what is below it.
    fn grant(&self, object: &Handle, rights: &str) {
        let id = ObjectId(*object);
        let text = format!(
            "Authorizer: \"{}\"\nLicensees: \"{}\"\nConditions: \
             (object == \"{id}\" || within ~= \"{id}\") -> \"{rights}\";\n",
            self.alice.public_key().to_keynote(),
            self.bob.public_key().to_keynote(),
        );
        let text = sign(&text, &self.alice).unwrap();
        let submitted = self.grants.submit(*self.bob.public_key(), &text).unwrap();
        assert!(submitted[0].outcome.is_held());
    }

    fn peer(key: Option<&PublicKey>) -> RpcPeer {
        let peer = RpcPeer::new("192.0.2.7:700".parse::<SocketAddr>().unwrap());
        let Some(key) = key else { return peer };
        let spki = key.to_spki();
        let id = KeyId(*spki.last_chunk().unwrap());
        let identity = PeerIdentity {
            key: PeerKey::new(&spki, id),
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: u64::MAX,
        };
        peer.over(Channel::Tls(Some(Arc::new(identity))))
    }

    fn enter(&self, key: Option<&PublicKey>, path: &str) -> Result<(View<'_>, Node), Refusal> {
        let door = Door::Path(path.as_bytes());
        View::enter(&self.plan, &Self::peer(key), &CredentialRef::NOBODY, door)
    }

    fn bob(&self, path: &str) -> Result<(View<'_>, Node), Refusal> {
        self.enter(Some(self.bob.public_key()), path)
    }

    /// Bob's view, and an object whose handle he has learned.
    fn bob_at(&self, object: &Handle) -> Result<(View<'_>, Node), Refusal> {
        let sealed = self.plan.seal(ExportId(1), object);
        let peer = Self::peer(Some(self.bob.public_key()));
        View::enter(&self.plan, &peer, &CredentialRef::NOBODY, Door::Handle(sealed.bytes()))
    }
}

fn names(view: &View<'_>, dir: &Node) -> Vec<String> {
    let mut names = Vec::new();
    let mut visit = |listing: &comity_vfs::Listing<'_, Disk>, _: Option<&comity_export::Seen>| {
        names.push(String::from_utf8_lossy(listing.name.bytes()).into_owned());
        ControlFlow::Continue(())
    };
    view.readdir(dir, 0, Listed::Nodes, &mut visit).unwrap();
    names.sort();
    names
}

#[test]
fn cached_identities_differ_by_key() {
    let exports = Exports::new(Plan::new(HandleKey::new([0; 16]), Vec::new()));
    let proof_of = |key| Gate::proof_of(&exports, &KeyedExport::peer(key));
    let [one, two] = [1, 2].map(|_| PrivateKey::generate(Algorithm::Ed25519).unwrap());
    let numbers = [None, Some(one.public_key()), Some(two.public_key())].map(proof_of);
    assert_eq!(BTreeSet::from(numbers).len(), 3);
    assert_eq!(proof_of(Some(one.public_key())), numbers[1]);
}

#[test]
fn a_bound_key_acts_as_its_user_whatever_ids_it_claims() {
    let site = KeyedExport::new(KeyUse::Preferred);
    let top = site.fs.root();
    let dir = site.mkdir(&top, "shared");
    let (view, shared) = site.enter(Some(site.alice.public_key()), "/srv/shared").unwrap();
    let made = view.create(NAMES, &shared, b"file", &Create::Guarded(SetAttr::default())).unwrap();
    let on_disk = site.fs.getattr(made.value.node.handle()).unwrap();
    assert_eq!((on_disk.uid.number(), on_disk.gid.number()), (ALICE, ALICE));
    // The client sees objects of its user under the ids that it claims.
    assert_eq!(made.value.attr.uid.number(), 65_534);
    assert_eq!(site.fs.getattr(&dir).unwrap().uid.number(), ALICE);
    // A caller without a key, or with one that is not bound, has the ids that it claims.
    for key in [None, Some(site.bob.public_key())] {
        let (view, shared) = site.enter(key, "/srv/shared").unwrap();
        let made = view.create(NAMES, &shared, b"other", &Create::Guarded(SetAttr::default()));
        assert_eq!(made.unwrap_err(), Status::Acces);
    }
}

#[test]
fn a_caller_is_told_as_whom_it_acts_and_its_state_rests_on_that() {
    let site = KeyedExport::new(KeyUse::Preferred);
    site.mkdir(&site.fs.root(), "shared");
    let alice = *site.alice.public_key();
    let (view, _) = site.enter(Some(&alice), "/srv/shared").unwrap();
    assert!(view.whoami().starts_with(&format!("key {alice} ")), "{}", view.whoami());
    assert!(view.whoami().ends_with("acts as user alice\n"), "{}", view.whoami());
    let grantee = view.grantee().unwrap();
    assert_eq!((grantee.key, grantee.user.as_deref()), (alice, Some("alice")));
    assert_eq!((grantee.address, grantee.export), ("192.0.2.7".parse().unwrap(), 1));
    let (view, _) = site.enter(None, "/srv/shared").unwrap();
    assert_eq!(view.whoami(), "no key\nacts as uid 65534, gid 65534\n");
    assert!(view.grantee().is_none(), "ids that a host claims rest on no key");
    let only = KeyedExport::new(KeyUse::Only);
    let (view, _) = only.bob("/srv").unwrap();
    assert!(view.whoami().ends_with("acts by what was granted to the key\n"));
    let grantee = view.grantee().unwrap();
    assert_eq!((grantee.key, grantee.user.clone()), (*only.bob.public_key(), None));
}

#[test]
fn a_connection_loses_a_user_with_the_account_of_its_key() {
    let site = KeyedExport::new(KeyUse::AccountsOnly);
    site.mkdir(&site.fs.root(), "shared");
    let peer = KeyedExport::peer(Some(site.alice.public_key()));
    let door = Door::Path(b"/srv/shared");
    let may_write = || {
        let (view, shared) =
            View::enter(&site.plan, &peer, &CredentialRef::NOBODY, door).map_err(drop).unwrap();
        view.access(&shared, Access::MODIFY).unwrap().0.contains(Access::MODIFY)
    };
    assert!(may_write());
    site.grants.bind(Accounts::default());
    assert!(!may_write());
}

#[test]
fn an_export_for_keys_only_refuses_a_caller_without_one() {
    let site = KeyedExport::new(KeyUse::Only);
    assert!(matches!(site.enter(None, "/srv"), Err(Refusal::Denied(_)) | Err(Refusal::Status(_))));
    let (view, root) = site.bob("/srv").unwrap();
    site.mkdir(&site.fs.root(), "secret");
    assert_eq!(names(&view, &root), [] as [&str; 0], "a key without grants sees nothing");
    assert!(matches!(site.bob("/srv/secret"), Err(Refusal::Status(Status::NoEnt))));
}

#[test]
fn a_key_sees_only_granted_objects_and_the_directories_above_them() {
    let site = KeyedExport::new(KeyUse::Only);
    let top = site.fs.root();
    let (p, secret) = (site.mkdir(&top, "p"), site.mkdir(&top, "secret"));
    let (report, private) = (site.mkdir(&p, "report"), site.mkdir(&p, "private"));
    site.create(&report, "text");
    let hidden = site.create(&private, "diary");
    site.grant(&report, "rx");
    let (view, root) = site.bob("/srv").unwrap();
    assert_eq!(names(&view, &root), ["p"]);
    let (view, p) = site.bob("/srv/p").unwrap();
    assert_eq!(names(&view, &p), ["report"]);
    let (view, report) = site.bob("/srv/p/report").unwrap();
    assert_eq!(names(&view, &report), ["text"]);
    assert_eq!(view.lookup(&p, b"private").unwrap_err(), Status::NoEnt);
    // An old handle is stale, and so is one that Bob has learned from somebody else.
    for object in [&secret, &private, &hidden] {
        assert!(matches!(site.bob_at(object), Err(Refusal::Status(Status::Stale))));
    }
}

#[test]
fn a_cloak_hides_from_a_key_as_from_its_grantor_whoever_is_anonymous() {
    for anonymous in [65_534, 0] {
        let key_use = KeyUse::Only;
        let mut rules = Rules { read_only: false, key_use, ..Rules::default() };
        rules.ids.anonymous = cred(anonymous);
        let (ids, mask) = (Range::single(500), "+000".parse().unwrap());
        rules.cloak = Cloak::new(&[CloakEntry { owned: Owned::ByUser, ids, mask }]).0;
        let site = KeyedExport::under(rules);
        let dir = site.mkdir(&site.fs.root(), "dir");
        site.create(&dir, "plain");
        let secret = site.create(&dir, "secret");
        let owner = SetAttr { uid: Some(Uid::new(500)), ..SetAttr::default() };
        site.fs.setattr(&cred(0), &secret, &owner, None).unwrap();
        site.grant(&dir, "rx");
        let (view, dir) = site.bob_at(&dir).unwrap();
        assert_eq!(names(&view, &dir), ["plain"], "anonymous is {anonymous}");
        assert_eq!(view.lookup(&dir, b"secret").map(drop), Err(Status::NoEnt));
    }
}

type Verb = (&'static str, &'static str, fn(&View<'_>, &Node, &Node) -> Result<(), Status>);

/// Each verb of a view that needs one right, with that right and a call of the verb on a directory
/// and a file in it.
const VERBS: [Verb; 27] = [
    ("getattr", "any", |view, _, file| view.getattr(file).map(drop)),
    ("properties", "any", |view, _, file| view.properties(file).map(drop)),
    ("statfs", "any", |view, _, file| view.statfs(file).map(drop)),
    ("access", "any", |view, _, file| view.access(file, Access::ALL).map(drop)),
    ("getacl", "any", |view, _, file| view.getacl(file, AclKind::Access).map(drop)),
    ("listxattr", "r", |view, _, file| view.listxattr(file).map(drop)),
    ("lookup", "x", |view, dir, _| view.lookup(dir, b"file").map(drop)),
    ("lookup dot", "x", |view, dir, _| view.lookup(dir, b".").map(drop)),
    ("parent", "x", |view, dir, _| view.parent(dir).map(drop)),
    ("readdir", "r", |view, dir, _| {
        let visit = &mut |_: &comity_vfs::Listing<'_, Disk>, _: Option<&comity_export::Seen>| {
            ControlFlow::Continue(())
        };
        view.readdir(dir, 0, Listed::Names, visit).map(drop)
    }),
    ("read", "r", |view, _, file| {
        view.read(file, 0, 1, &mut ReadInto::new(&mut Vec::new())).map(drop)
    }),
    ("getxattr", "r", |view, _, file| match view.getxattr(file, b"none") {
        Err(Status::NoXattr) => Ok(()),
        found => found.map(drop),
    }),
    ("seek", "r", |view, _, file| view.seek(file, 0, Seek::Hole).map(drop)),
    ("write", "w", |view, _, file| view.write(CLEAR, file, 0, b"x").map(drop)),
    ("write_opened", "w", |view, _, file| view.write_opened(CLEAR, file, 0, b"x").map(drop)),
    ("allocate", "w", |view, _, file| view.allocate(CLEAR, file, 0, 1).map(drop)),
    ("deallocate", "w", |view, _, file| view.deallocate(CLEAR, file, 0, 1).map(drop)),
    ("setattr size", "w", |view, _, file| {
        let set = SetAttr { size: Some(0), ..SetAttr::default() };
        view.setattr(CLEAR, file, &set, None).map(drop)
    }),
    ("setattr mode", "a", |view, _, file| {
        let set = SetAttr { mode: Some(Mode::new(0o600)), ..SetAttr::default() };
        view.setattr(CLEAR, file, &set, None).map(drop)
    }),
    ("setxattr", "a", |view, _, file| {
        view.setxattr(CLEAR, file, b"tag", Some(b"x"), XattrMode::Either).map(drop)
    }),
    ("setacl", "a", |view, _, file| view.setacl(CLEAR, file, AclKind::Access, None).map(drop)),
    ("create", "c", |view, dir, _| {
        view.create(NAMES, dir, b"new", &Create::Guarded(SetAttr::default())).map(drop)
    }),
    ("mkdir", "c", |view, dir, _| view.mkdir(NAMES, dir, b"new", &SetAttr::default()).map(drop)),
    ("symlink", "c", |view, dir, _| {
        view.symlink(NAMES, dir, b"new", b"to", &SetAttr::default()).map(drop)
    }),
    ("mknod", "c", |view, dir, _| {
        view.mknod(NAMES, dir, b"new", Special::Fifo, &SetAttr::default()).map(drop)
    }),
    ("link", "c", |view, dir, file| view.link(NAMES, file, dir, b"new").map(drop)),
    ("remove", "d", |view, dir, _| view.remove(NAMES, dir, b"file").map(drop)),
];

#[test]
fn every_verb_asks_for_exactly_its_right() {
    for (verb, needed, call) in VERBS {
        for right in ["r", "w", "x", "c", "d", "a"] {
            let site = KeyedExport::new(KeyUse::Only);
            let dir = site.mkdir(&site.fs.root(), "dir");
            let file = site.create(&dir, "file");
            site.fs.write(&cred(ALICE), &file, 0, b"text").unwrap();
            site.grant(&dir, right);
            let (view, at_dir) = site.bob_at(&dir).unwrap();
            let key = view.key(&at_dir);
            let key = comity_vfs::FileKey { handle: file, ..key };
            site.grants.ancestry().met(&key, &dir, b"file");
            let (_, at_file) = site.bob_at(&file).unwrap();
            let expected =
                if needed == "any" || needed == right { Ok(()) } else { Err(Status::Acces) };
            assert_eq!(call(&view, &at_dir, &at_file), expected, "{verb} with {right}");
        }
    }
}

#[test]
fn a_file_is_delegated_by_grants_only_to_a_key_that_may_read_it() {
    for (rights, expected) in [("wx", false), ("rx", true)] {
        let site = KeyedExport::new(KeyUse::Only);
        let file = site.create(&site.fs.root(), "file");
        site.grant(&file, rights);
        let (view, file) = site.bob("/srv/file").unwrap();
        assert_eq!(view.may_be_delegated(&file), Ok(expected), "{rights}");
    }
}

#[test]
fn files_that_a_key_makes_belong_to_the_grantor() {
    let site = KeyedExport::new(KeyUse::Only);
    let dir = site.mkdir(&site.fs.root(), "dir");
    site.grant(&dir, "rwxcd");
    let (view, dir) = site.bob_at(&dir).unwrap();
    let made = view.create(NAMES, &dir, b"new", &Create::Guarded(SetAttr::default())).unwrap();
    assert_eq!(site.fs.getattr(made.value.node.handle()).unwrap().uid.number(), ALICE);
    view.write(CLEAR, &made.value.node, 0, b"data").unwrap();
    view.rename(NAMES, (&dir, b"new"), (&dir, b"renamed")).unwrap();
    view.remove(NAMES, &dir, b"renamed").unwrap();
}

#[test]
fn no_right_is_gained_by_a_link_or_a_move() {
    let site = KeyedExport::new(KeyUse::Only);
    let top = site.fs.root();
    let (full, poor) = (site.mkdir(&top, "full"), site.mkdir(&top, "poor"));
    let file = site.create(&poor, "file");
    site.grant(&full, "rwxcda");
    site.grant(&poor, "xd");
    let (view, at_full) = site.bob_at(&full).unwrap();
    let (_, at_poor) = site.bob_at(&poor).unwrap();
    let (seen, _) = view.lookup(&at_poor, b"file").unwrap();
    assert_eq!(seen.node.handle(), &file);
    let linked = view.link(NAMES, &seen.node, &at_full, b"mine");
    assert_eq!(linked.unwrap_err(), Status::Acces);
    let moved = view.rename(NAMES, (&at_poor, b"file"), (&at_full, b"mine"));
    assert_eq!(moved.unwrap_err(), Status::Acces);
    // In the other direction no right is gained.
    view.create(NAMES, &at_full, b"own", &Create::Guarded(SetAttr::default())).unwrap();
    site.grant(&poor, "c");
    view.rename(NAMES, (&at_full, b"own"), (&at_poor, b"given")).unwrap();
}

#[test]
fn a_right_ends_when_the_file_is_moved_out_even_for_an_open_node() {
    let site = KeyedExport::new(KeyUse::Only);
    let top = site.fs.root();
    let (shared, private) = (site.mkdir(&top, "shared"), site.mkdir(&top, "private"));
    site.create(&shared, "file");
    site.grant(&shared, "rx");
    let (view, dir) = site.bob_at(&shared).unwrap();
    let (seen, _) = view.lookup(&dir, b"file").unwrap();
    let read = || view.read(&seen.node, 0, 1, &mut ReadInto::new(&mut Vec::new())).map(drop);
    assert_eq!(read(), Ok(()));
    // Alice moves it through the server, which counts at once.
    let (hers, from) = site.enter(Some(site.alice.public_key()), "/srv/shared").unwrap();
    let (_, to) = site.enter(Some(site.alice.public_key()), "/srv/private").unwrap();
    hers.rename(NAMES, (&from, b"file"), (&to, b"file")).unwrap();
    assert_eq!(read(), Err(Status::Stale));
    hers.rename(NAMES, (&to, b"file"), (&from, b"file")).unwrap();
    view.lookup(&dir, b"file").unwrap();
    assert_eq!(read(), Ok(()));
    // A program on the server moves it, which counts within a second.
    let (from, to) = ((&shared, name("file")), (&private, name("file")));
    site.fs.rename(&cred(0), from, to).unwrap();
    site.now.fetch_add(1_000, Ordering::SeqCst);
    assert_eq!(read(), Err(Status::Stale));
}

#[test]
fn access_reports_what_was_granted() {
    let site = KeyedExport::new(KeyUse::Only);
    let dir = site.mkdir(&site.fs.root(), "dir");
    site.create(&dir, "file");
    site.grant(&dir, "rx");
    let (view, dir) = site.bob_at(&dir).unwrap();
    let granted = |node: &Node| view.access(node, Access::ALL).unwrap().0;
    assert_eq!(granted(&dir), Access::READ | Access::LOOKUP);
    let (file, _) = view.lookup(&dir, b"file").unwrap();
    assert_eq!(granted(&file.node), Access::READ);
}

#[test]
fn credentials_are_submitted_and_explained_by_extended_attributes() {
    let site = KeyedExport::new(KeyUse::Only);
    let dir = site.mkdir(&site.fs.root(), "dir");
    let (view, root) = site.bob("/srv").unwrap();
    assert!(view.takes_grants(&root, b"comity.grant") && !view.takes_grants(&root, b"tag"));
    assert_eq!(view.submit_grants(&root, b"nonsense").unwrap_err(), Status::Inval);
    let text = |name: &[u8]| String::from_utf8(view.getxattr(&root, name).unwrap()).unwrap();
    let why = text(b"comity.why");
    assert!(why.contains("last submission: nothing was taken: credential 1"), "{why}");
    assert!(text(b"comity.whoami").contains(&site.bob.public_key().to_string()));
    site.grant(&dir, "r");
    let (view, dir) = site.bob_at(&dir).unwrap();
    let id = view.getxattr(&dir, b"comity.id").unwrap();
    assert_eq!(id, ObjectId(*dir.handle()).to_string().into_bytes());
    let why = String::from_utf8(view.getxattr(&dir, b"comity.why").unwrap()).unwrap();
    assert!(why.contains("allowed, as user alice"), "{why}");
    assert_eq!(view.getxattr(&dir, b"comity.grant"), Err(Status::NoXattr));
}

impl KeyedExport {
    /// Alice grants Bob rights to an object alone, not to the objects below it.
    fn grant_alone(&self, object: &Handle, rights: &str) {
        let id = ObjectId(*object);
        let text = format!(
            "Authorizer: \"{}\"\nLicensees: \"{}\"\nConditions: \
             object == \"{id}\" -> \"{rights}\";\n",
            self.alice.public_key().to_keynote(),
            self.bob.public_key().to_keynote(),
        );
        let text = sign(&text, &self.alice).unwrap();
        let submitted = self.grants.submit(*self.bob.public_key(), &text).unwrap();
        assert!(submitted[0].outcome.is_held());
    }

    fn is_there(&self, dir: &Handle, called: &str) -> bool {
        self.fs.lookup(&cred(ALICE), dir, name(called)).is_ok()
    }
}

#[test]
fn a_move_onto_a_file_needs_the_right_to_delete_there() {
    let site = KeyedExport::new(KeyUse::Only);
    let top = site.fs.root();
    let (full, poor) = (site.mkdir(&top, "full"), site.mkdir(&top, "poor"));
    let victim = site.create(&poor, "victim");
    site.create(&full, "own");
    site.grant(&full, "rwxcda");
    site.grant(&poor, "xc");
    let (view, at_full) = site.bob_at(&full).unwrap();
    let (_, at_poor) = site.bob_at(&poor).unwrap();
    let onto = |new: &[u8]| view.rename(NAMES, (&at_full, b"own"), (&at_poor, new)).map(drop);
    assert_eq!(onto(b"victim"), Err(Status::Acces));
    assert!(site.fs.getattr(&victim).is_ok_and(|attr| attr.links == 1));
    assert_eq!(onto(b"free"), Ok(()));
}

#[test]
fn a_name_whose_object_was_not_granted_cannot_be_removed_replaced_or_emptied() {
    let site = KeyedExport::new(KeyUse::Only);
    let dir = site.mkdir(&site.fs.root(), "dir");
    let (file, sub) = (site.create(&dir, "file"), site.mkdir(&dir, "sub"));
    let own = site.create(&dir, "own");
    site.fs.write(&cred(ALICE), &file, 0, b"text").unwrap();
    site.grant_alone(&dir, "rwxcda");
    site.grant_alone(&own, "rwxcda");
    let (view, dir_of_bob) = site.bob_at(&dir).unwrap();
    let dir_of_bob = &dir_of_bob;
    assert_eq!(names(&view, dir_of_bob), ["own"]);
    assert_eq!(view.remove(NAMES, dir_of_bob, b"file").unwrap_err(), Status::NoEnt);
    assert_eq!(view.rmdir(NAMES, dir_of_bob, b"sub").unwrap_err(), Status::NoEnt);
    let renamed = |from, to| view.rename(NAMES, (dir_of_bob, from), (dir_of_bob, to)).unwrap_err();
    assert_eq!(renamed(b"file", b"mine"), Status::NoEnt);
    assert_eq!(renamed(b"own", b"file"), Status::Exist);
    let empty = SetAttr { size: Some(0), ..SetAttr::default() };
    let made = view.create(NAMES, dir_of_bob, b"file", &Create::Unchecked(empty));
    assert_eq!(made.unwrap_err(), Status::Acces);
    // The key could not find the object that it makes.
    let made = view.create(NAMES, dir_of_bob, b"new", &Create::Guarded(SetAttr::default()));
    assert_eq!(made.unwrap_err(), Status::Acces);
    assert!(!site.is_there(&dir, "new"));
    assert!(["file", "sub", "own"].iter().all(|name| site.is_there(&dir, name)));
    assert_eq!(site.fs.getattr(&file).unwrap().size, 4);
    assert!(site.fs.getattr(&sub).is_ok());
}

#[test]
fn a_name_in_a_granted_directory_whose_object_a_condition_excludes_cannot_be_removed() {
    let site = KeyedExport::new(KeyUse::Only);
    let dir = site.mkdir(&site.fs.root(), "dir");
    let (file, _) = (site.create(&dir, "file"), site.create(&dir, "other"));
    let (dir_id, file_id) = (ObjectId(dir), ObjectId(file));
    let text = format!(
        "Authorizer: \"{}\"\nLicensees: \"{}\"\nConditions: (object == \"{dir_id}\" || \
         within ~= \"{dir_id}\") && object != \"{file_id}\" -> \"rwxcda\";\n",
        site.alice.public_key().to_keynote(),
        site.bob.public_key().to_keynote(),
    );
    site.grants.submit(*site.bob.public_key(), &sign(&text, &site.alice).unwrap()).unwrap();
    let (view, dir_of_bob) = site.bob_at(&dir).unwrap();
    assert_eq!(names(&view, &dir_of_bob), ["other"]);
    assert_eq!(view.remove(NAMES, &dir_of_bob, b"file").unwrap_err(), Status::NoEnt);
    let made =
        view.create(NAMES, &dir_of_bob, b"file", &Create::Guarded(SetAttr::default())).map(drop);
    assert_eq!(made, Err(Status::Exist));
    assert!(site.is_there(&dir, "file"));
    view.remove(NAMES, &dir_of_bob, b"other").unwrap();
    assert!(!site.is_there(&dir, "other"));
}

#[test]
fn a_directory_cannot_be_moved_to_a_place_where_a_key_gains_rights_to_its_entries() {
    let site = KeyedExport::new(KeyUse::Only);
    let top = site.fs.root();
    let (full, poor) = (site.mkdir(&top, "full"), site.mkdir(&top, "poor"));
    let dir = site.mkdir(&poor, "dir");
    let secret = site.mkdir(&dir, "secret");
    site.grant(&full, "rwxcda");
    site.grant_alone(&poor, "xcd");
    site.grant_alone(&dir, "rwxcda");
    let (view, at_full) = site.bob_at(&full).unwrap();
    let (_, at_poor) = site.bob_at(&poor).unwrap();
    let moved = view.rename(NAMES, (&at_poor, b"dir"), (&at_full, b"dir"));
    assert_eq!(moved.unwrap_err(), Status::Acces);
    assert!(matches!(site.bob_at(&secret), Err(Refusal::Status(Status::Stale))));
    // A directory below a grant that holds for all of it can be moved.
    let own = view.mkdir(NAMES, &at_full, b"own", &SetAttr::default()).unwrap();
    view.rename(NAMES, (&at_full, b"own"), (&at_full, b"new")).unwrap();
    let sub = view.mkdir(NAMES, &own.value.node, b"sub", &SetAttr::default()).map(drop);
    assert_eq!(sub, Ok(()));
    view.rename(NAMES, (&own.value.node, b"sub"), (&at_full, b"sub")).unwrap();
}

#[test]
fn a_key_is_the_creator_of_what_it_makes_and_of_nothing_that_it_finds() {
    let site = KeyedExport::new(KeyUse::Only);
    let shared = site.mkdir(&site.fs.root(), "shared");
    let old = site.create(&shared, "old");
    site.grant(&shared, "xc");
    let (view, dir) = site.bob("/srv/shared").unwrap();
    let create =
        |called: &str, how| view.create(NAMES, &dir, called.as_bytes(), &how).unwrap().value.node;
    let set = SetAttr::default();
    let found = create("old", Create::Unchecked(set));
    assert_eq!(*found.handle(), old);
    assert!(matches!(view.fetch(&found), Err(FetchError::NotCreator)));
    assert_eq!(view.getxattr(&found, b"comity.credential"), Err(Status::NoXattr));
    let mut into = Vec::new();
    assert!(view.read(&found, 0, 1, &mut ReadInto::new(&mut into)).is_err());
    let made = [
        create("unchecked", Create::Unchecked(set)),
        create("guarded", Create::Guarded(set)),
        create("exclusive", Create::Exclusive([7; 8])),
        create("exclusive", Create::Exclusive([7; 8])),
        view.mkdir(NAMES, &dir, b"dir", &set).unwrap().value.node,
        view.symlink(NAMES, &dir, b"link", b"old", &set).unwrap().value.node,
        view.mknod(NAMES, &dir, b"pipe", Special::Fifo, &set).unwrap().value.node,
    ];
    for node in &made {
        let credential = view.fetch(node).unwrap();
        assert_eq!(view.getxattr(node, b"comity.credential"), Ok(credential.into_bytes()));
    }
    assert!(view.read(&made[0], 0, 1, &mut ReadInto::new(&mut into)).is_ok());
}
