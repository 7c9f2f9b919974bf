//! A view of an export over the file system in memory.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{AuthStat, CredentialRef, Flavor, OpaqueAuth};
use comity_export::{
    Client, Door, Export, ExportId, HandleKey, Ids, Node, Plan, Refusal, RpcPeer, Rules, Squash,
    View,
};
use comity_rpc::AuthSys;
use comity_vfs::{
    Access, Create, Cred, Fs, Gid, Listed, Mode, ReadInto, SetAttr, Special, Status, Uid,
};
use comity_xdr::{Counted, Encoder, Opaque};

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

const KEY: [u8; 16] = [9; 16];

fn memory() -> Arc<Memory> {
    let options = MemoryOptions { root_mode: Mode::new(0o777), ..MemoryOptions::default() };
    Arc::new(Memory::new(options).unwrap())
}

fn export(id: u32, path: &str, fs: &Arc<Memory>, clients: Vec<(Client, Rules)>) -> Arc<Export> {
    let fs = Arc::clone(fs) as Arc<dyn Fs>;
    let clients = clients.into_iter().map(|(client, rules)| (client, Arc::new(rules))).collect();
    Arc::new(Export::new(ExportId(id), path.into(), fs, clients))
}

fn plan(exports: Vec<Arc<Export>>) -> Plan {
    Plan::new(HandleKey::new(KEY), exports)
}

fn everybody(rules: Rules) -> Plan {
    plan(vec![export(1, "/srv", &memory(), vec![(Client::Everybody, rules)])])
}

fn writable() -> Rules {
    Rules { read_only: false, ..Rules::default() }
}

fn visitor(peer: &str) -> RpcPeer {
    RpcPeer::new(peer.parse::<SocketAddr>().unwrap())
}

/// A credential of AUTH_SYS; owns the bytes that a reference to it borrows.
struct Sys(Encoder);

impl Sys {
    fn new(uid: u32, gid: u32, gids: &[u32]) -> Self {
        Self::stamped(1, uid, gid, gids)
    }

    fn stamped(stamp: u32, uid: u32, gid: u32, gids: &[u32]) -> Self {
        let (machine_name, gids) = (Opaque(&b"c"[..]), Counted(gids.to_vec()));
        let mut encoder = Encoder::new();
        encoder.value(&AuthSys { stamp, machine_name, uid, gid, gids });
        Self(encoder)
    }

    fn claim(&self) -> CredentialRef<'_> {
        CredentialRef::parse(&self.auth())
    }

    fn auth(&self) -> OpaqueAuth<'_> {
        OpaqueAuth { flavor: Flavor::SYS, body: Opaque(self.0.bytes()) }
    }
}

fn enter<'a>(
    plan: &'a Plan,
    visitor: &RpcPeer,
    uid: u32,
    path: &str,
) -> Result<(View<'a>, Node), Refusal> {
    View::enter(plan, visitor, &Sys::new(uid, uid, &[]).claim(), Door::Path(path.as_bytes()))
}

fn set() -> SetAttr<comity_vfs::Wire> {
    SetAttr { mode: Some(Mode::new(0o755)), ..SetAttr::default() }
}

fn made_file(view: &View<'_>, dir: &Node, name: &[u8]) -> Node {
    view.create(NAMES, dir, name, &Create::Guarded(set())).unwrap().value.node
}

/// The refusal of a caller that must not be admitted.
fn refusal(entered: Result<(View<'_>, Node), Refusal>) -> Refusal {
    entered.map(|_| ()).unwrap_err()
}

#[test]
fn every_verb_that_changes_something_is_refused_on_a_read_only_export() {
    let fs = memory();
    let rules = |client: &str, rules| (Client::parse(client).unwrap(), rules);
    let clients = vec![rules("10.0.0.1", writable()), rules("*", Rules::default())];
    let plan = plan(vec![export(1, "/srv", &fs, clients)]);
    let (writer, root) = enter(&plan, &visitor("10.0.0.1:700"), 5, "/srv").unwrap();
    let file = made_file(&writer, &root, b"f");
    let (view, root) = enter(&plan, &visitor("10.0.0.2:700"), 5, "/srv").unwrap();
    let ro = Err(Status::RoFs);
    assert_eq!(view.setattr(CLEAR, &file, &set(), None).map(drop), ro);
    assert_eq!(view.write(CLEAR, &file, 0, b"x").map(drop), ro);
    assert_eq!(view.create(NAMES, &root, b"g", &Create::Unchecked(set())).map(drop), ro);
    assert_eq!(view.create(NAMES, &root, b"g", &Create::Exclusive([1; 8])).map(drop), ro);
    assert_eq!(view.mkdir(NAMES, &root, b"g", &set()).map(drop), ro);
    assert_eq!(view.symlink(NAMES, &root, b"g", b"f", &set()).map(drop), ro);
    assert_eq!(view.mknod(NAMES, &root, b"g", Special::Fifo, &set()).map(drop), ro);
    assert_eq!(view.remove(NAMES, &root, b"f").map(drop), ro);
    assert_eq!(view.rmdir(NAMES, &root, b"f").map(drop), ro);
    assert_eq!(view.rename(NAMES, (&root, b"f"), (&root, b"g")).map(drop), ro);
    assert_eq!(view.link(NAMES, &file, &root, b"g").map(drop), ro);
    let (granted, _) = view.access(&file, Access::ALL).unwrap();
    assert_eq!(granted, Access::READ | Access::EXECUTE);
    let mut bytes = Vec::new();
    let mut into = ReadInto::new(&mut bytes);
    assert!(view.read(&file, 0, 10, &mut into).unwrap().eof);
    assert!(writer.write(CLEAR, &file, 0, b"x").is_ok());
}

/// Two Linux clients that booted at the same moment choose the same verifier (clock ticks and a
/// process number). Then both took the file for theirs.
#[test]
fn an_exclusive_create_is_one_clients_own() {
    let plan = everybody(writable());
    let exclusive = |peer: &str| {
        let (view, root) = enter(&plan, &visitor(peer), 7, "/srv").unwrap();
        view.create(NAMES, &root, b"lock", &Create::Exclusive([1; 8])).map(drop)
    };
    assert_eq!(exclusive("10.0.0.1:700"), Ok(()));
    assert_eq!(exclusive("10.0.0.2:700"), Err(Status::Exist));
    assert_eq!(exclusive("10.0.0.1:701"), Ok(()), "a retry over another connection");
}

#[test]
fn squashed_callers_act_as_the_anonymous_user() {
    for (squash, uid, owner) in [
        (Squash::Root, 0, 65_534),
        (Squash::Root, 7, 7),
        (Squash::None, 0, 0),
        (Squash::All, 7, 65_534),
    ] {
        let plan = everybody(Rules { ids: Ids { squash, ..Ids::default() }, ..writable() });
        let (view, root) = enter(&plan, &visitor("10.0.0.1:700"), uid, "/srv").unwrap();
        let file = made_file(&view, &root, b"f");
        let attr = view.getattr(&file).unwrap();
        assert_eq!((attr.uid, attr.gid), (Uid::new(owner), Gid::new(owner)), "{squash:?} {uid}");
    }
    let anonymous = Cred::new(Uid::new(150), Gid::new(100));
    let plan = everybody(Rules { ids: Ids { anonymous, ..Ids::default() }, ..writable() });
    let (view, root) = enter(&plan, &visitor("10.0.0.1:700"), 0, "/srv").unwrap();
    let attr = view.getattr(&made_file(&view, &root, b"f")).unwrap();
    assert_eq!((attr.uid, attr.gid), (Uid::new(150), Gid::new(100)));
}

#[test]
fn calls_from_unprivileged_ports_need_insecure() {
    let plan = everybody(Rules::default());
    let entered = |port: u16| enter(&plan, &visitor(&format!("10.0.0.1:{port}")), 5, "/srv");
    assert!(entered(1023).is_ok());
    assert_eq!(refusal(entered(1024)), Refusal::Status(Status::Perm));
    let plan = everybody(Rules { secure: false, ..Rules::default() });
    assert!(enter(&plan, &visitor("10.0.0.1:40000"), 5, "/srv").is_ok());
}

#[test]
fn a_credential_must_be_of_a_flavor_the_rules_take() {
    let entered = |plan: &Plan, auth: OpaqueAuth<'_>| {
        let door = Door::Path(b"/srv");
        View::enter(plan, &visitor("10.0.0.1:700"), &CredentialRef::parse(&auth), door).map(drop)
    };
    let sys = Sys::new(5, 5, &[]);
    let plan = everybody(Rules::default());
    assert_eq!(entered(&plan, OpaqueAuth::NONE), Err(Refusal::Denied(AuthStat::TooWeak)));
    let torn = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(&[0, 0, 0, 1]) };
    assert_eq!(entered(&plan, torn), Err(Refusal::Denied(AuthStat::BadCred)));
    let kerberos = OpaqueAuth { flavor: Flavor::GSS, body: Opaque(&[]) };
    assert_eq!(entered(&plan, kerberos), Err(Refusal::Denied(AuthStat::RejectedCred)));
    let plan = everybody(Rules { flavors: vec![Flavor::NONE], ..writable() });
    assert_eq!(entered(&plan, sys.auth()), Err(Refusal::Denied(AuthStat::TooWeak)));
    let visitor = visitor("10.0.0.1:700");
    let door = Door::Path(b"/srv");
    let (view, root) = View::enter(&plan, &visitor, &CredentialRef::None, door).unwrap();
    let attr = view.getattr(&made_file(&view, &root, b"f")).unwrap();
    assert_eq!(attr.uid, Uid::new(65_534));
}

#[test]
fn a_handle_opens_only_the_object_it_was_made_for() {
    let fs = memory();
    let clients = |client: &str| vec![(Client::parse(client).unwrap(), writable())];
    let both =
        plan(vec![export(1, "/a", &fs, clients("*")), export(2, "/b", &fs, clients("10.0.0.9"))]);
    let visitor = visitor("10.0.0.1:700");
    let (view, root) = enter(&both, &visitor, 5, "/a").unwrap();
    let file = made_file(&view, &root, b"f");
    let sealed = view.seal(&file);
    let sys = Sys::new(5, 5, &[]);
    let entered = |plan: &Plan, bytes: &[u8]| {
        View::enter(plan, &visitor, &sys.claim(), Door::Handle(bytes)).map(|(_, node)| node)
    };
    assert_eq!(entered(&both, sealed.bytes()), Ok(file));
    let mut forged = sealed.bytes().to_vec();
    forged[4] = 2;
    assert_eq!(entered(&both, &forged), Err(Refusal::Status(Status::BadHandle)), "other export");
    *forged.last_mut().unwrap() ^= 1;
    assert_eq!(entered(&both, &forged), Err(Refusal::Status(Status::BadHandle)), "other object");
    for bytes in [&[][..], &[1], &sealed.bytes()[..13], &[0; 64]] {
        assert_eq!(entered(&both, bytes), Err(Refusal::Status(Status::BadHandle)));
    }
    let foreign = HandleKey::new(KEY).seal(ExportId(2), &fs.root());
    let acces = Err(Refusal::Status(Status::Acces));
    assert_eq!(entered(&both, foreign.bytes()), acces, "genuine, but not offered to this client");
    assert_eq!(view.admit(foreign.bytes()), Err(Status::XDev));
    assert_eq!(view.admit(sealed.bytes()), Ok(file));
    let gone = plan(vec![export(2, "/b", &fs, clients("*"))]);
    assert_eq!(entered(&gone, sealed.bytes()), Err(Refusal::Status(Status::Stale)), "export gone");
    view.remove(NAMES, &root, b"f").unwrap();
    assert_eq!(view.getattr(&file), Err(Status::Stale), "object gone");
    let other = plan(vec![export(1, "/a", &memory(), clients("*"))]);
    let (view, _) = enter(&other, &visitor, 5, "/a").unwrap();
    assert_eq!(view.getattr(&root), Err(Status::Stale), "another file system");
}

#[test]
fn nothing_leads_above_the_root() {
    let plan = everybody(writable());
    let (view, root) = enter(&plan, &visitor("10.0.0.1:700"), 5, "/srv").unwrap();
    let dir = view.mkdir(NAMES, &root, b"d", &set()).unwrap().value.node;
    let lookup = |dir: &Node, name: &[u8]| view.lookup(dir, name).map(|(seen, _)| seen.node);
    assert_eq!(lookup(&root, b".."), Ok(root));
    assert_eq!(lookup(&root, b"."), Ok(root));
    assert_eq!(lookup(&dir, b".."), Ok(root));
    assert_eq!(lookup(&dir, b"."), Ok(dir));
    assert_eq!(view.parent(&root).unwrap().node, root);
    let file = made_file(&view, &root, b"f");
    assert_eq!(lookup(&file, b"."), Err(Status::NotDir));
    assert_eq!(lookup(&file, b".."), Err(Status::NotDir));
    let closed = SetAttr { mode: Some(Mode::new(0)), ..SetAttr::default() };
    view.setattr(CLEAR, &dir, &closed, None).unwrap();
    assert_eq!(lookup(&dir, b".."), Err(Status::Acces));
}

/// Names that are malformed or dots get the errors of RFC 1813 (3.2, 3.3.9, 3.3.13, 3.3.14).
#[test]
fn the_status_for_a_bad_name_depends_on_the_verb() {
    let plan = everybody(writable());
    let (view, root) = enter(&plan, &visitor("10.0.0.1:700"), 5, "/srv").unwrap();
    let file = made_file(&view, &root, b"f");
    let verbs = |name: &[u8]| {
        [
            view.create(NAMES, &root, name, &Create::Unchecked(set())).map(drop),
            view.mkdir(NAMES, &root, name, &set()).map(drop),
            view.symlink(NAMES, &root, name, b"t", &set()).map(drop),
            view.mknod(NAMES, &root, name, Special::Fifo, &set()).map(drop),
            view.link(NAMES, &file, &root, name).map(drop),
            view.remove(NAMES, &root, name).map(drop),
            view.rmdir(NAMES, &root, name).map(drop),
            view.rename(NAMES, (&root, name), (&root, b"x")).map(drop),
            view.rename(NAMES, (&root, b"f"), (&root, name)).map(drop),
        ]
    };
    use Status::{Acces, Exist, Inval, NameTooLong};
    let dot = [Exist, Exist, Exist, Exist, Exist, Acces, Inval, Inval, Inval].map(Err);
    assert_eq!(verbs(b"."), dot);
    let dots = [Exist, Exist, Exist, Exist, Exist, Acces, Exist, Inval, Inval].map(Err);
    assert_eq!(verbs(b".."), dots);
    for name in [&b""[..], b"a/b", b"/", b"a\0"] {
        assert_eq!(verbs(name), [Err(Acces); 9], "{name:?}");
        assert_eq!(view.lookup(&root, name).map(drop), Err(Acces), "{name:?}");
    }
    assert_eq!(verbs(&[b'x'; 256]), [Err(NameTooLong); 9]);
    assert_eq!(view.lookup(&root, &[b'x'; 256]).map(drop), Err(NameTooLong));
    let names = [&[b'x'; 255][..], b"...", b"\xff", b" "];
    for name in names {
        made_file(&view, &root, name);
        assert!(view.lookup(&root, name).is_ok());
    }
    let mut shown = 0;
    view.readdir(&root, 0, Listed::Nodes, &mut |listing, seen| {
        shown += 1;
        assert!(listing.node.is_none() && seen.is_some());
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(shown, names.len() + 1);
}

#[test]
fn paths_lead_to_the_innermost_export_the_caller_may_use() {
    let (outer, inner) = (memory(), memory());
    let plan = plan(vec![
        export(1, "/srv", &outer, vec![(Client::Everybody, writable())]),
        export(2, "/srv/in", &inner, vec![(Client::parse("10.0.0.2").unwrap(), writable())]),
        export(3, "/closed", &inner, vec![(Client::parse("10.0.0.2").unwrap(), writable())]),
    ]);
    let one = visitor("10.0.0.1:700");
    let (view, root) = enter(&plan, &one, 5, "/srv").unwrap();
    let dir = view.mkdir(NAMES, &root, b"in", &set()).unwrap().value.node;
    made_file(&view, &root, b"f");
    view.symlink(NAMES, &root, b"link", b"in", &set()).unwrap();
    let of = |visitor: &RpcPeer, path: &str| {
        enter(&plan, visitor, 5, path).map(|(view, node)| (view.export_id().0, node))
    };
    assert_eq!(of(&one, "/srv/in"), Ok((1, dir)), "what LOOKUP finds, under the same rules");
    assert_eq!(of(&visitor("10.0.0.2:700"), "/srv/in").unwrap().0, 2);
    assert_eq!(of(&visitor("10.0.0.2:700"), "/srv/in/").unwrap().0, 2);
    assert_eq!(of(&visitor("[::ffff:10.0.0.2]:700"), "/srv/in").unwrap().0, 2, "IPv4 in IPv6");
    let status = |path| of(&one, path).unwrap_err();
    for path in ["/closed", "/closed/x", "/nowhere", "/", "", "srv", "/srvx"] {
        assert_eq!(
            status(path),
            Refusal::Status(Status::Acces),
            "{path}: the status must not reveal which names exist"
        );
    }
    assert_eq!(status("/srv/missing"), Refusal::Status(Status::NoEnt));
    assert_eq!(status("/srv/in/../.."), Refusal::Status(Status::Inval));
    assert_eq!(status("/srv/link"), Refusal::Status(Status::NotDir));
}

#[test]
fn a_caller_that_is_confined_reaches_the_named_exports_only() {
    let fs = memory();
    let all = || vec![(Client::Everybody, writable())];
    let both = plan(vec![export(1, "/a", &fs, all()), export(2, "/b", &fs, all())]);
    let confined = visitor("10.0.0.1:700").confined_to([ExportId(2)]);
    let sys = Sys::new(5, 5, &[]);
    let stale = Some(Refusal::Status(Status::Stale));
    for (id, path, refusal) in [(1, "/a", stale), (2, "/b", None)] {
        let sealed = HandleKey::new(KEY).seal(ExportId(id), &fs.root());
        for door in [Door::Handle(sealed.bytes()), Door::Path(path.as_bytes())] {
            let entered = View::enter(&both, &confined, &sys.claim(), door);
            assert_eq!(entered.err(), refusal, "{path}");
        }
    }
}

#[test]
fn two_exports_of_one_file_system_have_two_fsids() {
    let fs = memory();
    let both = plan(vec![
        export(7, "/a", &fs, vec![(Client::Everybody, Rules::default())]),
        export(8, "/b", &fs, vec![(Client::Everybody, Rules::default())]),
    ]);
    let fsid = |plan: &Plan, path: &str| {
        let (view, root) = enter(plan, &visitor("10.0.0.1:700"), 5, path).unwrap();
        view.getattr(&root).unwrap().fsid
    };
    assert_ne!(fsid(&both, "/a"), fsid(&both, "/b"));
    let again = plan(vec![export(7, "/c", &memory(), vec![(Client::Everybody, writable())])]);
    assert_eq!(fsid(&both, "/a"), fsid(&again, "/c"), "the export's number decides alone");
    // A client keeps the number over a new start of the server, also one of another version.
    assert_eq!(fsid(&both, "/a"), 0x0000_0007_0000_0007);
    assert_eq!(fsid(&both, "/b"), 0x0000_0008_0000_0008);
}

#[test]
fn a_resolved_caller_is_kept_until_the_plan_changes() {
    let fs = memory();
    let plan_of = |rules| plan(vec![export(1, "/srv", &fs, vec![(Client::Everybody, rules)])]);
    let visitor = visitor("10.0.0.1:700");
    let first = plan_of(writable());
    let (view, root) = enter(&first, &visitor, 5, "/srv").unwrap();
    let sealed = view.seal(&root);
    let may_write = |plan: &Plan, stamp| {
        let sys = Sys::stamped(stamp, 5, 5, &[]);
        let entered = View::enter(plan, &visitor, &sys.claim(), Door::Handle(sealed.bytes()));
        entered.map(|(view, root)| view.mkdir(NAMES, &root, &[b'a' + stamp as u8], &set()).is_ok())
    };
    assert_eq!(may_write(&first, 0), Ok(true));
    assert_eq!(may_write(&first, 1), Ok(true));
    assert_eq!(may_write(&plan_of(Rules::default()), 2), Ok(false), "rules changed");
    assert_eq!(may_write(&plan(vec![]), 3), Err(Refusal::Status(Status::Stale)), "export gone");
    let none = plan(vec![export(1, "/srv", &fs, vec![])]);
    assert_eq!(may_write(&none, 3), Err(Refusal::Status(Status::Acces)), "client gone");
    assert!(
        view.mkdir(NAMES, &root, b"x", &set()).is_ok(),
        "a request is judged by one plan, whole"
    );
    assert_eq!(may_write(&first, 4), Ok(true));
}

#[test]
fn users_that_call_in_turn_are_not_mixed_up() {
    let plan = everybody(writable());
    let visitor = visitor("10.0.0.1:700");
    for round in 0..3_u32 {
        for uid in 1..100_u32 {
            let (view, root) = enter(&plan, &visitor, uid, "/srv").unwrap();
            let file = made_file(&view, &root, format!("{round}.{uid}").as_bytes());
            assert_eq!(view.getattr(&file).unwrap().uid, Uid::new(uid));
        }
    }
}

#[test]
fn supplementary_groups_open_what_they_may() {
    let plan = everybody(writable());
    let visitor = visitor("10.0.0.1:700");
    let (view, root) = enter(&plan, &visitor, 5, "/srv").unwrap();
    let file = made_file(&view, &root, b"f");
    let group = SetAttr { mode: Some(Mode::new(0o040)), ..SetAttr::default() };
    view.setattr(CLEAR, &file, &group, None).unwrap();
    let sealed = view.seal(&file);
    let may_read = |gids: &[u32]| {
        let sys = Sys::new(6, 6, gids);
        let door = Door::Handle(sealed.bytes());
        let (view, file) = View::enter(&plan, &visitor, &sys.claim(), door).unwrap();
        view.access(&file, Access::READ).unwrap().0 == Access::READ
    };
    assert!(!may_read(&[]) && !may_read(&[7, 8]) && may_read(&[7, 5]));
}
