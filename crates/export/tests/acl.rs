//! Ids in ACLs are mapped by the same maps as owners.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use comity_export::{Node, View};
use comity_vfs::{Acl, AclEntry, AclKind, AclTag, Gid, IdDomain, Status, Uid};
use proptest::prelude::*;

use site::Site;

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();

const MAPS: &str =
    "rw,insecure,range_map_uid=1000-1999:51000-51999,range_map_gid=100-199:52100-52199";

/// An ACL that names these users and groups.
fn naming<S: IdDomain>(users: &[u32], groups: &[u32]) -> Acl<S> {
    let entry = |tag| AclEntry { tag, permissions: 5 };
    let users = users.iter().map(|uid| AclTag::User(Uid::new(*uid)));
    let groups = groups.iter().map(|gid| AclTag::Group(Gid::new(*gid)));
    let tags = [AclTag::UserObj].into_iter().chain(users).chain([AclTag::GroupObj]);
    let tags = tags.chain(groups).chain([AclTag::Mask, AclTag::Other]);
    Acl { entries: tags.map(entry).collect() }
}

fn named<S: IdDomain>(acl: &Acl<S>) -> (Vec<u32>, Vec<u32>) {
    let mut named = (Vec::new(), Vec::new());
    for entry in &acl.entries {
        match entry.tag {
            AclTag::User(uid) => named.0.push(uid.number()),
            AclTag::Group(gid) => named.1.push(gid.number()),
            _ => {}
        }
    }
    named
}

fn shown(view: &View<'_>, node: &Node) -> (Vec<u32>, Vec<u32>) {
    named(&view.getacl(node, AclKind::Access).unwrap().unwrap())
}

#[test]
fn users_and_groups_in_an_acl_are_mapped_in_both_directions() {
    let site = Site::new(MAPS);
    let file = site.file(b"f", (51_005, 52_105), 0o640);
    let (view, _) = site.guest(1005, 105, &[]);
    view.setacl(CLEAR, &file, AclKind::Access, Some(&naming(&[1006, 1007], &[106]))).unwrap();
    assert_eq!(shown(&view, &file), (vec![1006, 1007], vec![106]));
    let (admin, _) = site.admin();
    assert_eq!(shown(&admin, &file), (vec![51_006, 51_007], vec![52_106]));
}

#[test]
fn a_default_acl_is_mapped_too() {
    let site = Site::new(MAPS);
    let dir = site.dir(b"d", (51_005, 52_105), 0o750);
    let (view, _) = site.guest(1005, 105, &[]);
    view.setacl(CLEAR, &dir, AclKind::Default, Some(&naming(&[1006], &[106]))).unwrap();
    let (admin, _) = site.admin();
    let default = admin.getacl(&dir, AclKind::Default).unwrap().unwrap();
    assert_eq!(named(&default), (vec![51_006], vec![52_106]));
    view.setacl(CLEAR, &dir, AclKind::Default, None).unwrap();
    assert_eq!(admin.getacl(&dir, AclKind::Default).unwrap(), None);
}

#[test]
fn an_id_in_no_range_cannot_be_named_and_is_shown_as_anonymous() {
    let site = Site::new(MAPS);
    let file = site.file(b"f", (51_005, 52_105), 0o640);
    let (view, _) = site.guest(1005, 105, &[]);
    for (users, groups) in
        [(&[2000][..], &[][..]), (&[], &[200]), (&[51_006], &[]), (&[u32::MAX], &[])]
    {
        let set = view.setacl(CLEAR, &file, AclKind::Access, Some(&naming(users, groups)));
        assert_eq!(set.map(drop), Err(Status::BadOwner), "{users:?} {groups:?}");
    }
    let (admin, _) = site.admin();
    admin.setacl(CLEAR, &file, AclKind::Access, Some(&naming(&[7], &[51_006]))).unwrap();
    assert_eq!(
        shown(&view, &file),
        (vec![65_534], vec![65_534]),
        "the server's number is not shown"
    );
    let acl = view.getacl(&file, AclKind::Access).unwrap().unwrap();
    let set = view.setacl(CLEAR, &file, AclKind::Access, Some(&acl)).map(drop);
    assert_eq!(
        set,
        Err(Status::BadOwner),
        "setting it again does not give it to the anonymous user"
    );
}

#[test]
fn an_acl_cannot_be_set_where_nothing_may_be_changed() {
    let site = Site::new("ro,insecure");
    let file = site.file(b"f", (7, 7), 0o640);
    let (view, _) = site.guest(7, 7, &[]);
    let set = view.setacl(CLEAR, &file, AclKind::Access, Some(&naming(&[8], &[]))).map(drop);
    assert_eq!(set, Err(Status::RoFs));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A client of a one-to-one range sees the ids that it set; the disk has the mapped ones.
    #[test]
    fn an_acl_that_is_set_is_shown_again(
        users in proptest::collection::btree_set(1000..2000_u32, 1..6),
        groups in proptest::collection::btree_set(100..200_u32, 0..6),
    ) {
        let site = Site::new(MAPS);
        let file = site.file(b"f", (51_005, 52_105), 0o640);
        let (view, _) = site.guest(1005, 105, &[]);
        let (users, groups): (Vec<_>, Vec<_>) =
            (users.into_iter().collect(), groups.into_iter().collect());
        view.setacl(CLEAR, &file, AclKind::Access, Some(&naming(&users, &groups))).unwrap();
        prop_assert_eq!(shown(&view, &file), (users.clone(), groups.clone()));
        let on_disk = (
            users.iter().map(|uid| uid + 50_000).collect(),
            groups.iter().map(|gid| gid + 52_000).collect(),
        );
        prop_assert_eq!(shown(&site.admin().0, &file), on_disk);
    }
}
