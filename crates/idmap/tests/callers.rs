//! Callers with hand-written maps: the ids that they act under, and the ids that they see.
#![allow(clippy::unwrap_used, clippy::panic)]

use comity_idmap::{Denied, IdMap, IdMapBuilder, IdOutcome, Ids, MapDefault, Range, Rule, Squash};
use comity_vfs::{
    Acl, AclEntry, AclTag, Attr, Cred, Device, Disk, FileType, Gid, Mode, SetAttr, Time, Uid, Wire,
};
use proptest::prelude::*;

const ANONYMOUS: u32 = 65_534;
const NO_ID: u32 = u32::MAX;

type Pair = (u32, u32);

fn map(rules: &[(Pair, Pair)]) -> IdMap {
    let mut builder = IdMapBuilder::default();
    for ((first, last), (target, end)) in rules {
        let wire = Range { first: *first, last: *last };
        let disk = Range { first: *target, last: *end };
        builder.add(Rule { wire, disk }).unwrap();
    }
    builder.build()
}

/// Users 1000 to 1999 are 5000 to 5999 on disk, groups 100 to 199 are 700 to 799.
fn site(default: MapDefault) -> Ids {
    let users = map(&[((1000, 1999), (5000, 5999))]);
    let groups = map(&[((100, 199), (700, 799))]);
    Ids { users, groups, default, ..Ids::default() }
}

fn cred(uid: u32, gid: u32, gids: &[u32]) -> Cred<Wire> {
    Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(gids.iter().copied().map(Gid::new))
}

fn acting(ids: &Ids, uid: u32, gid: u32, gids: &[u32]) -> (u32, u32, Vec<u32>) {
    let caller = ids.admit(&cred(uid, gid, gids)).unwrap();
    let disk = caller.disk();
    (disk.uid.number(), disk.gid.number(), disk.groups.iter().map(|gid| gid.number()).collect())
}

#[test]
fn without_ranges_only_root_is_squashed() {
    let ids = Ids::default();
    assert_eq!(acting(&ids, 5, 6, &[7, 8]), (5, 6, vec![7, 8]));
    assert_eq!(acting(&ids, 0, 6, &[0, 8]), (ANONYMOUS, 6, vec![ANONYMOUS, 8]));
    assert_eq!(acting(&ids, 5, 0, &[]), (5, ANONYMOUS, vec![]));
    let ids = Ids { squash: Squash::None, ..Ids::default() };
    assert_eq!(acting(&ids, 0, 0, &[0]), (0, 0, vec![0]));
}

#[test]
fn all_squash_replaces_everything_that_a_caller_claims() {
    let ids = Ids { squash: Squash::All, ..site(MapDefault::Pass) };
    for (uid, gid) in [(0, 0), (5, 6), (1000, 100), (NO_ID, NO_ID)] {
        assert_eq!(acting(&ids, uid, gid, &[100, 7]), (ANONYMOUS, ANONYMOUS, vec![]));
        assert!(ids.admit(&cred(uid, gid, &[])).unwrap().is_squashed());
    }
}

#[test]
fn a_range_decides_about_its_ids_and_the_default_about_others() {
    for default in [MapDefault::Squash, MapDefault::Pass, MapDefault::Deny] {
        assert_eq!(acting(&site(default), 1001, 101, &[102]), (5001, 701, vec![702]));
    }
    let squashed = site(MapDefault::Squash);
    assert_eq!(acting(&squashed, 2000, 200, &[]), (ANONYMOUS, ANONYMOUS, vec![]));
    let passed = site(MapDefault::Pass);
    assert_eq!(acting(&passed, 2000, 200, &[300]), (2000, 200, vec![300]));
    let denied = site(MapDefault::Deny);
    let refusal = |uid, gid| denied.admit(&cred(uid, gid, &[])).map(drop);
    assert_eq!(refusal(2000, 100), Err(Denied::User(Uid::new(2000))));
    assert_eq!(refusal(1000, 200), Err(Denied::Group(Gid::new(200))));
    assert_eq!(refusal(1000, 100), Ok(()));
}

#[test]
fn a_supplementary_group_in_no_range_is_dropped_and_never_anonymous() {
    for default in [MapDefault::Squash, MapDefault::Deny] {
        assert_eq!(acting(&site(default), 1000, 100, &[300, 101, 301]).2, [701]);
    }
}

#[test]
fn a_caller_counts_as_squashed_if_user_or_group_is_anonymous() {
    let ids = site(MapDefault::Squash);
    let squashed = |uid, gid| ids.admit(&cred(uid, gid, &[])).unwrap().is_squashed();
    assert!(!squashed(1000, 100));
    assert!(squashed(1000, 200) && squashed(2000, 100) && squashed(0, 100));
    assert!(ids.nobody().is_squashed());
}

#[test]
fn a_caller_sees_its_own_files_under_its_own_ids() {
    let ids = site(MapDefault::Squash);
    let caller = ids.admit(&cred(2000, 200, &[])).unwrap();
    let user = |uid| ids.user_out(&caller, Uid::new(uid)).number();
    let group = |gid| ids.group_out(&caller, Gid::new(gid)).number();
    assert_eq!((user(ANONYMOUS), group(ANONYMOUS)), (2000, 200), "what it makes is its own");
    assert_eq!((user(5001), group(701)), (1001, 101));
    assert_eq!((user(1001), group(101)), (ANONYMOUS, ANONYMOUS), "no client id leads there");
}

#[test]
fn nobody_sees_what_a_squashed_caller_does_not_own() {
    let ids = site(MapDefault::Squash);
    let nobody = ids.nobody();
    let user = |uid| ids.user_out(&nobody, Uid::new(uid)).number();
    assert_eq!((user(5001), user(ANONYMOUS), user(7)), (1001, ANONYMOUS, ANONYMOUS));
    assert_eq!(nobody.disk().uid.number(), ANONYMOUS);
}

#[test]
fn outcomes_name_the_rule() {
    let ids = Ids { users: map(&[((1, 1), (9, 9)), ((5, 6), (20, 21))]), ..Ids::default() };
    let outcome = |uid| ids.user_fate(Uid::new(uid));
    assert_eq!(outcome(0), IdOutcome::Squashed);
    assert_eq!(outcome(1), IdOutcome::Mapped { disk: 9, rule: 0 });
    assert_eq!(outcome(6), IdOutcome::Mapped { disk: 21, rule: 1 });
    assert_eq!(outcome(7), IdOutcome::Anonymous);
    assert_eq!(ids.group_fate(Gid::new(7)), IdOutcome::Unmapped, "groups have no ranges");
}

#[test]
fn the_id_of_no_user_is_neither_set_nor_acted_under() {
    for default in [MapDefault::Squash, MapDefault::Pass, MapDefault::Deny] {
        for ids in [site(default), Ids { default, squash: Squash::None, ..Ids::default() }] {
            let set = SetAttr { uid: Some(Uid::new(NO_ID)), ..SetAttr::default() };
            assert!(ids.set_in(&set).is_err());
            let set = SetAttr { gid: Some(Gid::new(NO_ID)), ..SetAttr::default() };
            assert!(ids.set_in(&set).is_err());
            let (uid, gid, groups) = acting(&ids, NO_ID, NO_ID, &[NO_ID]);
            assert_eq!((uid, gid), (ANONYMOUS, ANONYMOUS));
            assert!(!groups.contains(&NO_ID));
        }
    }
}

#[test]
fn an_acl_with_somebody_unmapped_is_refused_whole() {
    let ids = site(MapDefault::Squash);
    let entry = |tag| AclEntry { tag, permissions: 6 };
    let acl = |tags: &[AclTag<Wire>]| Acl { entries: tags.iter().copied().map(entry).collect() };
    let known = [AclTag::UserObj, AclTag::User(Uid::new(1000)), AclTag::Group(Gid::new(100))];
    let disk = ids.acl_in(&acl(&known)).unwrap();
    let expected = [AclTag::UserObj, AclTag::User(Uid::new(5000)), AclTag::Group(Gid::new(700))];
    assert!(disk.entries.iter().map(|entry| entry.tag).eq(expected));
    for stranger in [AclTag::User(Uid::new(2000)), AclTag::Group(Gid::new(200))] {
        assert!(ids.acl_in(&acl(&[known[1], stranger])).is_err());
    }
}

/// A one-to-one map of some users and groups.
fn one_to_one() -> impl Strategy<Value = Ids> {
    let start = (0..500_u32, 1..100_u32);
    let default =
        prop_oneof![Just(MapDefault::Squash), Just(MapDefault::Pass), Just(MapDefault::Deny)];
    (start.clone(), start, default).prop_map(|(users, groups, default)| {
        let range = |(first, more): (u32, u32)| {
            map(&[((first, first + more), (10_000 + first, 10_000 + first + more))])
        };
        let (users, groups) = (range(users), range(groups));
        Ids { users, groups, default, squash: Squash::None, ..Ids::default() }
    })
}

proptest! {
    /// A client that sets an ACL is shown the same names, whoever asks.
    #[test]
    fn an_acl_that_was_set_is_shown_as_it_was(
        ids in one_to_one(),
        named in proptest::collection::vec((0..600_u32, any::<bool>(), 0..8_u8), 0..8),
    ) {
        let covered = |map: &IdMap, id| map.rules().iter().any(|rule| rule.wire.covers(id));
        let entries: Vec<AclEntry<Wire>> = named
            .iter()
            .filter(|(id, user, _)| covered(if *user { &ids.users } else { &ids.groups }, *id))
            .map(|(id, user, permissions)| AclEntry {
                tag: if *user { AclTag::User(Uid::new(*id)) } else { AclTag::Group(Gid::new(*id)) },
                permissions: *permissions,
            })
            .collect();
        let acl = Acl { entries };
        let disk = ids.acl_in(&acl).unwrap();
        prop_assert_eq!(ids.acl_out(&ids.nobody(), &disk), acl);
    }

    /// The explained outcome is the applied one.
    #[test]
    fn outcomes_agree_with_the_ids_that_a_caller_acts_under(
        ids in one_to_one(),
        squash in prop_oneof![Just(Squash::None), Just(Squash::Root)],
        (uid, gid) in (0..700_u32, 0..700_u32),
    ) {
        let ids = Ids { squash, ..ids };
        let expected = |outcome, wire| match outcome {
            IdOutcome::Mapped { disk, .. } => Some(disk),
            IdOutcome::Unmapped | IdOutcome::Passed => Some(wire),
            IdOutcome::Squashed | IdOutcome::Anonymous => Some(ANONYMOUS),
            IdOutcome::Denied => None,
        };
        let user = expected(ids.user_fate(Uid::new(uid)), uid);
        let group = expected(ids.group_fate(Gid::new(gid)), gid);
        match ids.admit(&cred(uid, gid, &[])) {
            Ok(caller) => {
                prop_assert_eq!(Some(caller.disk().uid.number()), user);
                prop_assert_eq!(Some(caller.disk().gid.number()), group);
            }
            Err(Denied::User(denied)) => {
                prop_assert_eq!((user, denied.number()), (None, uid));
            }
            Err(Denied::Group(denied)) => {
                prop_assert_eq!((group, denied.number()), (None, gid));
            }
        }
    }

    /// The owner that a client sets is the owner that it is shown afterwards.
    #[test]
    fn an_owner_that_was_set_is_shown_as_it_was(ids in one_to_one(), uid in 0..700_u32) {
        let set = SetAttr { uid: Some(Uid::new(uid)), ..SetAttr::default() };
        if let Ok(set) = ids.set_in(&set) {
            let owner: Uid<Disk> = set.uid.unwrap();
            prop_assert_eq!(ids.user_out(&ids.nobody(), owner).number(), uid);
        }
    }

    /// Supplementary groups keep their order, and each one results from a rule.
    #[test]
    fn groups_keep_their_order(
        ids in one_to_one(),
        gids in proptest::collection::vec(0..700_u32, 0..16),
    ) {
        let Some(first) = ids.users.rules().first().map(|rule| rule.wire.first) else {
            return Ok(());
        };
        let gid = ids.groups.rules().first().map_or(0, |rule| rule.wire.first);
        let caller = ids.admit(&cred(first, gid, &gids)).unwrap();
        let covers = |gid: u32| ids.groups.rules().iter().any(|rule| rule.wire.covers(gid));
        let passes = ids.default == MapDefault::Pass;
        let expected: Vec<u32> = gids
            .iter()
            .filter(|gid| passes || covers(**gid))
            .map(|gid| if covers(*gid) { 10_000 + gid } else { *gid })
            .collect();
        let groups: Vec<u32> = caller.disk().groups.iter().map(|gid| gid.number()).collect();
        prop_assert_eq!(groups, expected);
    }
}

fn attr_of(uid: u32, gid: u32) -> Attr<Disk> {
    let (zero, device) = (Time { seconds: 0, nanoseconds: 0 }, Device { major: 0, minor: 0 });
    Attr {
        file_type: FileType::Regular,
        mode: Mode::new(0o644),
        links: 1,
        uid: Uid::new(uid),
        gid: Gid::new(gid),
        size: 0,
        used: 0,
        device,
        fsid: 1,
        fileid: 2,
        atime: zero,
        mtime: zero,
        ctime: zero,
        change: 0,
    }
}

#[test]
fn user_and_group_of_an_object_are_shown_together() {
    let ids = site(MapDefault::Squash);
    let caller = ids.admit(&cred(1001, 101, &[])).unwrap();
    let own = (Uid::new(1001), Gid::new(101));
    assert_eq!(ids.shown(&caller, &attr_of(5001, 701)), own);
    assert_eq!(ids.mapped(&caller, &attr_of(5001, 701)), own);
    let other = (Uid::new(1002), Gid::new(102));
    assert_eq!(ids.shown(&caller, &attr_of(5002, 702)), other);
    assert_eq!(ids.mapped(&caller, &attr_of(5002, 702)), other);
}

#[test]
fn a_caller_known_by_its_key_sees_its_own_objects_under_the_ids_that_it_says() {
    let user = Cred::new(Uid::new(70), Gid::new(71));
    for ids in [Ids::default(), site(MapDefault::Pass)] {
        let caller = ids.proved(Some(&cred(3, 4, &[])), user.clone());
        assert_eq!(caller.disk(), &user);
        assert_eq!(ids.shown(&caller, &attr_of(70, 71)), (Uid::new(3), Gid::new(4)));
        let others = ids.shown(&caller, &attr_of(80, 81));
        assert_eq!(others, (Uid::new(80), Gid::new(81)), "it is not shown others as its own");
    }
    let caller = Ids::default().admit(&cred(3, 4, &[])).unwrap();
    let shown = Ids::default().shown(&caller, &attr_of(3, 4));
    assert_eq!(shown, (Uid::new(3), Gid::new(4)), "a caller without a key is itself");
}
