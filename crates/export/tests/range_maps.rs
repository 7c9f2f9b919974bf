//! Maps of ids and cloaks as a site behind them sees them, from the text of an exports file.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{ExportRequest, HandleKey, Node, Refusal, Source, Sources, View, load};
use comity_vfs::{Access, Create, Fs, Gid, Mode, SetAttr, Status, Uid, Wire};

use site::{Site, chown, names, owned};

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

const MAPS: &str =
    "rw,insecure,range_map_uid=1000-1999:51000-51999,range_map_gid=100-199:52100-52199";

fn owner(view: &View<'_>, node: &Node) -> (u32, u32) {
    let attr = view.getattr(node).unwrap();
    (attr.uid.number(), attr.gid.number())
}

fn to_owner(uid: Option<u32>, gid: Option<u32>) -> SetAttr<Wire> {
    SetAttr { uid: uid.map(Uid::new), gid: gid.map(Gid::new), ..SetAttr::default() }
}

#[test]
fn files_that_a_user_makes_are_its_own_on_both_sides() {
    let site = Site::new(MAPS);
    let (view, root) = site.guest(1005, 105, &[]);
    let file = view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o640))).unwrap().value.node;
    assert_eq!(owner(&view, &file), (1005, 105));
    let (admin, root) = site.admin();
    let found = admin.lookup(&root, b"f").unwrap().0.node;
    assert_eq!(owner(&admin, &found), (51_005, 52_105));
}

#[test]
fn an_id_outside_all_ranges_is_shown_as_anonymous_and_never_by_its_server_id() {
    let site = Site::new(MAPS);
    site.file(b"foreign", (7, 8), 0o666);
    site.file(b"theirs", (1005, 105), 0o666);
    site.file(b"mapped", (51_006, 52_106), 0o666);
    let (view, root) = site.guest(1005, 105, &[]);
    let shown = |name: &[u8]| {
        let seen = view.lookup(&root, name).unwrap().0;
        (seen.attr.uid.number(), seen.attr.gid.number())
    };
    assert_eq!(shown(b"foreign"), (65_534, 65_534));
    assert_eq!(shown(b"theirs"), (65_534, 65_534), "the server's 1005 is not the guest's");
    assert_eq!(shown(b"mapped"), (1006, 106));
}

#[test]
fn supplementary_groups_are_mapped_and_those_in_no_range_are_dropped() {
    let site = Site::new(MAPS);
    site.file(b"group", (7, 52_150), 0o040);
    site.file(b"unmapped", (7, 300), 0o040);
    site.file(b"anonymous", (7, 65_534), 0o040);
    let may_read = |name: &[u8], gids: &[u32]| {
        let (view, root) = site.guest(1005, 105, gids);
        let file = view.lookup(&root, name).unwrap().0.node;
        view.access(&file, Access::READ).unwrap().0 == Access::READ
    };
    assert!(!may_read(b"group", &[]) && may_read(b"group", &[7, 150]));
    assert!(!may_read(b"unmapped", &[300]));
    assert!(!may_read(b"anonymous", &[300]), "it does not become the anonymous group");
    let site = Site::new(&format!("{MAPS},map_default=pass"));
    site.file(b"unmapped", (7, 300), 0o040);
    let (view, root) = site.guest(1005, 105, &[300]);
    let file = view.lookup(&root, b"unmapped").unwrap().0.node;
    assert_eq!(view.access(&file, Access::READ).unwrap().0, Access::READ, "ids pass");
}

#[test]
fn an_owner_the_domain_has_no_id_for_cannot_be_set() {
    let site = Site::new(&format!("{MAPS},no_root_squash,map_default=pass"));
    let (root_of_guest, root) = site.guest(0, 0, &[]);
    let file = site.file(b"f", (51_005, 52_105), 0o644);
    let set = |set: SetAttr<Wire>| root_of_guest.setattr(CLEAR, &file, &set, None).map(drop);
    assert_eq!(set(to_owner(Some(1006), Some(106))), Ok(()));
    assert_eq!(owner(&site.admin().0, &file), (51_006, 52_106));
    assert_eq!(set(to_owner(Some(u32::MAX), None)), Err(Status::BadOwner));
    let site = Site::new(&format!("{MAPS},no_root_squash"));
    let file = site.file(b"f", (51_005, 52_105), 0o666);
    let (view, root_again) = site.guest(1005, 105, &[]);
    for wrong in
        [to_owner(Some(2000), None), to_owner(None, Some(200)), to_owner(Some(51_005), None)]
    {
        assert_eq!(view.setattr(CLEAR, &file, &wrong, None).map(drop), Err(Status::BadOwner));
        let made = view.create(NAMES, &root_again, b"new", &Create::Guarded(wrong)).map(drop);
        assert_eq!(made, Err(Status::BadOwner));
        let made = view.mkdir(NAMES, &root_again, b"new", &wrong).map(drop);
        assert_eq!(made, Err(Status::BadOwner));
        let made = view.symlink(NAMES, &root_again, b"new", b"t", &wrong).map(drop);
        assert_eq!(made, Err(Status::BadOwner));
    }
    assert_eq!(owner(&site.admin().0, &file), (51_005, 52_105));
    assert_eq!(names(&view, &root_again), ["f"]);
    drop((root, root_of_guest));
}

#[test]
fn many_become_one_and_each_sees_its_own_number() {
    let site = Site::new("rw,insecure,range_map_uid=100-199:7000,range_map_gid=100-199:7000");
    site.file(b"f", (7000, 7000), 0o600);
    for uid in [100, 150, 199] {
        let (view, root) = site.guest(uid, uid, &[]);
        let file = view.lookup(&root, b"f").unwrap().0.node;
        assert_eq!(owner(&view, &file), (uid, uid));
        assert_eq!(view.access(&file, Access::READ).unwrap().0, Access::READ);
    }
    let (view, root) = site.guest(9, 9, &[]);
    let file = view.lookup(&root, b"f").unwrap().0.node;
    assert_eq!(owner(&view, &file), (100, 100), "other callers see the lowest id of the range");
}

#[test]
fn map_default_decides_about_ids_in_no_range() {
    let acting = |default: &str, uid: u32| {
        let site = Site::new(&format!("{MAPS},map_default={default}"));
        let entered = site.enter(uid, uid, &[]).map(|(view, root)| {
            view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o600))).unwrap();
        });
        entered.map(|()| {
            let (admin, root) = site.admin();
            let attr = admin.lookup(&root, b"f").unwrap().0.attr;
            (attr.uid.number(), attr.gid.number())
        })
    };
    assert_eq!(acting("squash", 7), Ok((65_534, 65_534)));
    assert_eq!(acting("pass", 7), Ok((7, 7)));
    assert_eq!(acting("deny", 7), Err(Refusal::Status(Status::Acces)));
    assert_eq!(acting("deny", 1005), Err(Refusal::Status(Status::Acces)), "its group is in none");
    assert_eq!(acting("deny", 0), Ok((65_534, 65_534)), "squashing comes first");
}

/// Lustre nodemap: "squash ids outside the range escape it".
#[test]
fn lustre_the_squash_id_is_a_server_id_and_is_not_mapped_again() {
    let site = Site::new(&format!("{MAPS},anonuid=1500,anongid=150"));
    let (view, root) = site.guest(7, 7, &[]);
    view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o600))).unwrap();
    let (admin, root) = site.admin();
    let attr = admin.lookup(&root, b"f").unwrap().0.attr;
    assert_eq!((attr.uid.number(), attr.gid.number()), (1500, 150), "it is not mapped once more");
}

/// Lustre nodemap: "files are not re-owned when an offset changes".
#[test]
fn lustre_a_changed_map_does_not_change_the_owners_of_files() {
    let site = Site::new(MAPS);
    site.file(b"f", (51_005, 52_105), 0o600);
    let moved = site.again("rw,insecure,range_map_uid=1000-1999:61000-61999");
    let (view, root) = moved.guest(1005, 105, &[]);
    let file = view.lookup(&root, b"f").unwrap().0.node;
    assert_eq!(
        view.getattr(&file).unwrap().uid.number(),
        65_534,
        "it belongs to no client id any more"
    );
    assert_eq!(view.access(&file, Access::READ).unwrap().0, Access::NONE);
    assert_eq!(owner(&moved.admin().0, &file).0, 51_005);
}

/// Lustre nodemap: a client of no nodemap acts as nobody. Here it is refused.
#[test]
fn lustre_a_client_of_no_entry_is_refused_and_not_squashed() {
    let site = Site::new(MAPS);
    let entered = Site::enter_plan(site.plan(), "10.0.0.3:40000", (1005, 105, &[])).map(drop);
    assert_eq!(entered, Err(Refusal::Status(Status::Acces)));
}

/// Lustre nodemap does not permit squashing to root. Here it is a warning.
#[test]
fn lustre_squashing_to_an_id_with_rights_is_a_warning() {
    let fs = |uid: u32| {
        let root_uid = Uid::new(uid);
        Arc::new(Memory::new(MemoryOptions { root_uid, ..MemoryOptions::default() }).unwrap())
    };
    let told = |fs: &Arc<Memory>, options: &str| {
        let text = format!("/srv ::1({options})\n").into();
        let source = Source::Text { name: "e".into(), text };
        let netgroups = "/nonexistent".into();
        let sources = Sources { netgroups, ..Sources::new(vec![source]) };
        let open = |_: &ExportRequest<'_>| Ok(Arc::clone(fs) as Arc<dyn Fs>);
        let (_, found) = load(&sources, &open, HandleKey::new([3; 16]), None).unwrap();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let (roots, nobodys) = (fs(0), fs(65_534));
    assert_eq!(told(&roots, MAPS), "");
    assert!(told(&roots, &format!("{MAPS},anonuid=0")).contains("whoever is squashed has root's"));
    assert!(told(&nobodys, MAPS).contains("the anonymous uid 65534 owns /srv"));
    assert_eq!(told(&nobodys, "rw,insecure,all_squash"), "", "all_squash says that it is meant");
}

/// FreeBSD nfsd, caa309c8811d (2024): `-mapall=user:` names a user without groups, and the server
/// handled credentials without groups wrongly.
#[test]
fn freebsd_everybody_as_one_user_keeps_no_group_of_the_caller() {
    let site = Site::new("rw,insecure,all_squash,anonuid=2002,anongid=2003");
    site.file(b"f", (7, 100), 0o040);
    site.file(b"g", (7, 2003), 0o040);
    let (view, root) = site.guest(1005, 100, &[100]);
    let may_read = |name: &[u8]| {
        let file = view.lookup(&root, name).unwrap().0.node;
        view.access(&file, Access::READ).unwrap().0 == Access::READ
    };
    assert!(!may_read(b"f") && may_read(b"g"));
}

/// FreeBSD `-maproot`: the supplementary groups of root are dropped when root is squashed.
#[test]
fn freebsd_a_squashed_root_keeps_no_group_of_roots() {
    let site = Site::new("rw,insecure");
    site.file(b"f", (7, 0), 0o060);
    let (view, root) = site.guest(0, 0, &[0]);
    let file = view.lookup(&root, b"f").unwrap().0.node;
    assert_eq!(view.access(&file, Access::READ).unwrap().0, Access::NONE);
}

/// illumos share_nfs: a rule is for one id, or for all of them by `*`.
#[test]
fn illumos_single_ids_and_everybody() {
    let site = Site::new("rw,insecure,range_map_uid=501:1001,range_map_uid=0-4294967294:2000");
    for (uid, server) in [(501, 1001), (502, 2000), (4_294_967_294, 2000), (0, 65_534)] {
        let (view, root) = site.guest(uid, 5, &[]);
        view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o600))).unwrap();
        let (admin, root) = site.admin();
        assert_eq!(admin.lookup(&root, b"f").unwrap().0.attr.uid.number(), server, "{uid}");
        admin.remove(NAMES, &root, b"f").unwrap();
    }
}

/// FreeBSD `-maproot` and `-mapall`: root, or everybody, acts as one user of the server.
#[test]
fn freebsd_root_alone_or_everybody_as_one_user() {
    for (options, uid, server) in [
        ("no_root_squash,range_map_uid=0:2001,map_default=pass", 0, 2001),
        ("no_root_squash,range_map_uid=0:2001,map_default=pass", 9, 9),
        ("all_squash,anonuid=2002", 0, 2002),
        ("all_squash,anonuid=2002", 9, 2002),
        ("range_map_uid=0:2001,map_default=pass", 0, 65_534),
    ] {
        let site = Site::new(&format!("rw,insecure,{options}"));
        let (view, root) = site.guest(uid, 5, &[]);
        view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o600))).unwrap();
        let (admin, root) = site.admin();
        let attr = admin.lookup(&root, b"f").unwrap().0.attr;
        assert_eq!(attr.uid.number(), server, "{options} {uid}");
    }
}

/// The id -1 names no user. It never acts as one, even where it is mapped or passed.
#[test]
fn minus_one_is_nobody() {
    let site = Site::new(&format!("{MAPS},no_root_squash,map_default=pass"));
    let (view, root) = site.guest(u32::MAX, u32::MAX, &[u32::MAX]);
    view.create(NAMES, &root, b"f", &Create::Guarded(owned(0o600))).unwrap();
    let (admin, root) = site.admin();
    let attr = admin.lookup(&root, b"f").unwrap().0.attr;
    assert_eq!((attr.uid.number(), attr.gid.number()), (65_534, 65_534));
}

/// uids are mapped and gids are not: the client's gid 100 is that of the server.
#[test]
fn without_a_map_of_groups_they_keep_their_numbers() {
    let site = Site::new("rw,insecure,range_map_uid=1000-1999:51000-51999");
    site.file(b"f", (7, 100), 0o040);
    let (view, root) = site.guest(1005, 100, &[]);
    let file = view.lookup(&root, b"f").unwrap().0.node;
    assert_eq!(view.access(&file, Access::READ).unwrap().0, Access::READ);
    assert_eq!(owner(&view, &file), (65_534, 100));
}

#[test]
fn a_chmod_works_on_a_file_whose_group_has_no_client_id() {
    let site = Site::new(MAPS);
    let file = site.file(b"f", (51_005, 9), 0o600);
    let (view, _) = site.guest(1005, 105, &[]);
    let set = SetAttr { mode: Some(Mode::new(0o640)), ..SetAttr::default() };
    assert!(view.setattr(CLEAR, &file, &set, None).is_ok());
    assert_eq!(
        chown(&view, &file, 1006),
        Err(Status::Perm),
        "only the superuser may give a file away"
    );
}
