//! Random maps: nobody acts as a user that it is not mapped to, and ids without a client form are
//! not shown.
#![allow(clippy::unwrap_used, clippy::panic)]

use comity_idmap::{IdMap, IdMapBuilder, Ids, MapDefault, Range, Rule, Squash};
use comity_vfs::{Cred, Disk, Gid, SetAttr, Uid, Wire};
use proptest::prelude::*;

const ANONYMOUS: u32 = 65_534;

fn map() -> impl Strategy<Value = IdMap> {
    let rule = (0..300_u32, 0..900_u32, 0..50_u32, any::<bool>());
    proptest::collection::vec(rule, 0..5).prop_map(|rules| {
        let mut builder = IdMapBuilder::default();
        for (first, target, more, gather) in rules {
            let (wire, target) = (Range { first, last: first + more }, 1000 + target);
            let last = if gather { target } else { target + more };
            // Rules that contradict earlier ones are left out, because a configuration with them
            // would be refused.
            let _ = builder.add(Rule { wire, disk: Range { first: target, last } });
        }
        builder.build()
    })
}

fn ids() -> impl Strategy<Value = Ids> {
    let default =
        prop_oneof![Just(MapDefault::Squash), Just(MapDefault::Pass), Just(MapDefault::Deny)];
    let squash = prop_oneof![Just(Squash::None), Just(Squash::Root), Just(Squash::All)];
    (map(), map(), default, squash).prop_map(|(users, groups, default, squash)| {
        let anonymous = Cred::new(Uid::new(ANONYMOUS), Gid::new(ANONYMOUS));
        Ids { squash, anonymous, users, groups, default, ..Ids::default() }
    })
}

/// Returns whether `wire` may become `disk`: by a rule, or because unmapped ids pass.
fn leads(ids: &Ids, map: &IdMap, wire: u32, disk: u32) -> bool {
    let covered = map.rules().iter().find(|rule| rule.wire.covers(wire));
    match covered {
        Some(rule) if rule.disk.count() == 1 => rule.disk.first == disk,
        Some(rule) => rule.disk.first + (wire - rule.wire.first) == disk,
        None => wire == disk && (map.is_empty() || ids.default == MapDefault::Pass),
    }
}

proptest! {
    #[test]
    fn nobody_acts_as_somebody_it_is_not_mapped_to(
        ids in ids(),
        (uid, gid) in (0..400_u32, 0..400_u32),
        gids in proptest::collection::vec(0..400_u32, 0..5),
    ) {
        let wire = Cred::<Wire>::new(Uid::new(uid), Gid::new(gid))
            .with_groups(gids.iter().copied().map(Gid::new));
        let Ok(caller) = ids.admit(&wire) else {
            prop_assert_eq!(ids.default, MapDefault::Deny);
            return Ok(());
        };
        let disk = caller.disk();
        let user = disk.uid.number();
        prop_assert!(user == ANONYMOUS || leads(&ids, &ids.users, uid, user));
        let group = disk.gid.number();
        prop_assert!(group == ANONYMOUS || leads(&ids, &ids.groups, gid, group));
        for group in disk.groups.iter().map(|group| group.number()) {
            let from = |gid: &u32| leads(&ids, &ids.groups, *gid, group);
            let squashed = group == ANONYMOUS && ids.squash == Squash::Root && gids.contains(&0);
            prop_assert!(squashed || gids.iter().any(from), "{}", group);
        }
    }

    #[test]
    fn nothing_is_shown_that_has_no_client_form(
        ids in ids(),
        (uid, gid, owner) in (0..400_u32, 0..400_u32, 0..2000_u32),
    ) {
        let wire = Cred::<Wire>::new(Uid::new(uid), Gid::new(gid));
        let caller = ids.admit(&wire).unwrap_or_else(|_| ids.nobody());
        let shown = ids.user_out(&caller, Uid::<Disk>::new(owner)).number();
        let own = shown == uid && caller.disk().uid.number() == owner;
        prop_assert!(
            own || shown == ANONYMOUS || leads(&ids, &ids.users, shown, owner)
                || ids.default == MapDefault::Pass && shown == owner,
            "{} as {}", owner, shown
        );
    }

    #[test]
    fn an_owner_is_set_by_a_rule_or_not_at_all(ids in ids(), owner in 0..400_u32) {
        let set = SetAttr { uid: Some(Uid::new(owner)), ..SetAttr::default() };
        let covered = ids.users.rules().iter().any(|rule| rule.wire.covers(owner));
        match ids.set_in(&set) {
            Ok(set) => {
                prop_assert!(leads(&ids, &ids.users, owner, set.uid.unwrap().number()));
            }
            Err(_) => prop_assert!(!covered && ids.default != MapDefault::Pass),
        }
    }
}
