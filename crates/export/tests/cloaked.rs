//! A hidden object does not exist for any verb; cases that cannot be hidden are answered as
//! docs/semantics.md says.
#![allow(clippy::unwrap_used, clippy::panic)]

mod site;

use std::ops::ControlFlow;

use comity_export::limits::LISTING_ENTRIES_MAX;
use comity_export::{Door, Node, Refusal, View};
use comity_vfs::{Access, Create, Listed, SetAttr, Special, Status, Time};

use site::{Site, names, owned};

/// No client holds state in these tests.
const CLEAR: comity_export::Clearance = comity_export::Clearance::given();
const NAMES: comity_export::DirectoryClearance<'static> =
    comity_export::DirectoryClearance::given();

/// Files of 500 to 599 are shown to their owners alone.
const CLOAK: &str = "rw,insecure,cloak_uid=500-599:+000";

fn site() -> Site {
    let site = Site::new(CLOAK);
    site.file(b"plain", (7, 7), 0o666);
    site.file(b"secret", (500, 7), 0o666);
    site.dir(b"vault", (500, 7), 0o777);
    site
}

fn size(site: &Site, name: &[u8]) -> u64 {
    let (admin, root) = site.admin();
    admin.lookup(&root, name).unwrap().0.attr.size
}

#[test]
fn names_of_hidden_objects_are_not_found_and_not_listed() {
    let site = site();
    let (view, root) = site.guest(7, 7, &[]);
    assert_eq!(names(&view, &root), ["plain"]);
    for hidden in [&b"secret"[..], b"vault"] {
        assert_eq!(view.lookup(&root, hidden).map(drop), Err(Status::NoEnt));
        assert_eq!(view.remove(NAMES, &root, hidden).map(drop), Err(Status::NoEnt));
        assert_eq!(view.rmdir(NAMES, &root, hidden).map(drop), Err(Status::NoEnt));
        let renamed = view.rename(NAMES, (&root, hidden), (&root, b"mine"));
        assert_eq!(renamed.map(drop), Err(Status::NoEnt));
        let renamed = view.rename(NAMES, (&root, hidden), (&root, hidden));
        assert_eq!(renamed.map(drop), Err(Status::NoEnt));
    }
    let (owner, root) = site.guest(500, 7, &[]);
    assert_eq!(
        names(&owner, &root),
        ["plain", "secret", "vault"],
        "the owner does not see its own object"
    );
    let (admin, root) = site.admin();
    assert_eq!(names(&admin, &root), ["plain", "secret", "vault"], "nothing was removed");
}

#[test]
fn handles_of_hidden_objects_are_stale() {
    let site = site();
    let (admin, root) = site.admin();
    let (view, _) = site.guest(7, 7, &[]);
    for name in [&b"secret"[..], b"vault"] {
        let sealed = admin.seal(&admin.lookup(&root, name).unwrap().0.node);
        let entered = site.through(7, 7, &[], Door::Handle(sealed.bytes())).map(drop);
        assert_eq!(entered, Err(Refusal::Status(Status::Stale)));
        assert_eq!(view.admit(sealed.bytes()), Err(Status::Stale), "as a second handle");
        assert!(site.through(500, 7, &[], Door::Handle(sealed.bytes())).is_ok());
    }
}

#[test]
fn names_and_handles_that_a_cloak_hid_are_counted_for_their_client() {
    let site = site();
    let (admin, root) = site.admin();
    let sealed = admin.seal(&admin.lookup(&root, b"secret").unwrap().0.node);
    let hidden = || {
        let export = &site.plan().exports()[0];
        let counted = export.counters().map(|of| (of.name().to_owned(), of.counts().hidden));
        counted.filter(|(_, hidden)| *hidden > 0).collect::<Vec<_>>()
    };
    assert_eq!(hidden(), []);
    let (view, root) = site.guest(7, 7, &[]);
    assert_eq!(view.lookup(&root, b"plain").map(drop), Ok(()));
    assert_eq!(hidden(), [], "a visible name does not count");
    assert_eq!(view.lookup(&root, b"secret").map(drop), Err(Status::NoEnt));
    assert_eq!(hidden(), [("10.0.0.2".to_owned(), 1)]);
    assert_eq!(view.admit(sealed.bytes()), Err(Status::Stale));
    assert_eq!(hidden(), [("10.0.0.2".to_owned(), 2)]);
    assert_eq!(names(&view, &root), ["plain"]);
    assert_eq!(hidden(), [("10.0.0.2".to_owned(), 4)], "a listing leaves two entries out");
}

#[test]
fn an_open_file_goes_stale_when_it_is_cloaked() {
    let site = Site::new("rw,insecure");
    site.file(b"secret", (500, 7), 0o666);
    let (view, root) = site.guest(7, 7, &[]);
    let sealed = view.seal(&view.lookup(&root, b"secret").unwrap().0.node);
    let after = site.again(CLOAK);
    let entered = after.through(7, 7, &[], Door::Handle(sealed.bytes())).map(drop);
    assert_eq!(entered, Err(Refusal::Status(Status::Stale)));
}

#[test]
fn making_something_over_a_hidden_name_is_exist_and_leaves_it_whole() {
    let site = site();
    let (owner, root) = site.guest(500, 7, &[]);
    let secret = owner.lookup(&root, b"secret").unwrap().0.node;
    owner.write(CLEAR, &secret, 0, b"whole").unwrap();
    let (view, root) = site.guest(7, 7, &[]);
    let cut = SetAttr { size: Some(0), ..owned(0o600) };
    let exist = Err(Status::Exist);
    for name in [&b"secret"[..], b"vault"] {
        for how in [Create::Unchecked(cut), Create::Guarded(cut), Create::Exclusive([1; 8])] {
            assert_eq!(view.create(NAMES, &root, name, &how).map(drop), exist);
        }
        assert_eq!(view.mkdir(NAMES, &root, name, &owned(0o700)).map(drop), exist);
        assert_eq!(view.symlink(NAMES, &root, name, b"t", &owned(0o777)).map(drop), exist);
        assert_eq!(view.mknod(NAMES, &root, name, Special::Fifo, &owned(0o600)).map(drop), exist);
        let plain = view.lookup(&root, b"plain").unwrap().0.node;
        assert_eq!(view.link(NAMES, &plain, &root, name).map(drop), exist);
        assert_eq!(view.rename(NAMES, (&root, b"plain"), (&root, name)).map(drop), exist);
        let missing = view.rename(NAMES, (&root, b"missing"), (&root, name));
        assert_eq!(missing.map(drop), Err(Status::NoEnt), "as over a name that is not there");
    }
    assert_eq!(size(&site, b"secret"), 5);
    assert_eq!(names(&view, &root), ["plain"]);
}

#[test]
fn a_directory_of_hidden_entries_is_empty_but_cannot_be_removed() {
    let site = Site::new(CLOAK);
    let dir = site.dir(b"dir", (7, 7), 0o777);
    let (admin, _) = site.admin();
    site.file_in(&dir, b"secret", (500, 7), 0o600, &admin);
    let (view, root) = site.guest(7, 7, &[]);
    assert_eq!(names(&view, &dir), [""; 0]);
    assert_eq!(view.rmdir(NAMES, &root, b"dir").map(drop), Err(Status::NotEmpty));
    view.mkdir(NAMES, &root, b"other", &owned(0o700)).unwrap();
    let renamed = view.rename(NAMES, (&root, b"other"), (&root, b"dir"));
    assert_eq!(renamed.map(drop), Err(Status::NotEmpty));
}

#[test]
fn mount_finds_no_way_through_hidden_directories() {
    let site = site();
    let (admin, root) = site.admin();
    let vault = admin.lookup(&root, b"vault").unwrap().0.node;
    admin.mkdir(NAMES, &vault, b"open", &owned(0o777)).unwrap();
    admin.symlink(NAMES, &root, b"hidden-link", b"plain", &owned(0o777)).unwrap();
    let link = admin.lookup(&root, b"hidden-link").unwrap().0.node;
    assert_eq!(site::chown(&admin, &link, 500), Ok(()));
    let mount = |uid, path: &str| site.through(uid, 7, &[], Door::Path(path.as_bytes())).map(drop);
    let absent = Err(Refusal::Status(Status::NoEnt));
    for path in ["/srv/vault", "/srv/vault/open", "/srv/missing", "/srv/hidden-link"] {
        assert_eq!(mount(7, path), absent, "{path}");
    }
    assert_eq!(mount(500, "/srv/vault"), Ok(()));
    assert_eq!(mount(500, "/srv/hidden-link"), Err(Refusal::Status(Status::NotDir)));
}

#[test]
fn mounting_below_an_export_takes_the_right_to_search_on_the_way() {
    let site = Site::new("rw,insecure");
    let closed = site.dir(b"closed", (8, 8), 0o700);
    let (admin, _) = site.admin();
    admin.mkdir(NAMES, &closed, b"open", &owned(0o777)).unwrap();
    let mount = |uid, path: &str| site.through(uid, 7, &[], Door::Path(path.as_bytes())).map(drop);
    let refused = Err(Refusal::Status(Status::Acces));
    assert_eq!(mount(7, "/srv/closed/open"), refused);
    assert_eq!(mount(7, "/srv/closed/missing"), refused, "names in there are not told of");
    assert_eq!(mount(0, "/srv/closed/open"), refused, "root is squashed");
    assert_eq!(mount(7, "/srv/closed"), Ok(()), "its parent can be searched");
    assert_eq!(mount(8, "/srv/closed/open"), Ok(()));
}

#[test]
fn a_listing_continues_at_each_cookie_when_entries_are_hidden() {
    let site = Site::new(CLOAK);
    for number in 0..40 {
        let owner = if number % 3 == 0 { 7 } else { 500 };
        site.file(format!("f{number:02}").as_bytes(), (owner, 7), 0o600);
    }
    let (view, root) = site.guest(7, 7, &[]);
    let (mut found, mut cookie) = (Vec::new(), 0);
    loop {
        let before = found.len();
        let listed = |seen: &mut Vec<String>, cookie: &mut u64| {
            view.readdir(&root, *cookie, Listed::Nodes, &mut |listing, node| {
                assert!(node.is_some());
                seen.push(String::from_utf8(listing.name.bytes().to_vec()).unwrap());
                *cookie = listing.cookie;
                ControlFlow::Break(())
            })
        };
        let from = &mut cookie;
        listed(&mut found, from).unwrap();
        if found.len() == before {
            break;
        }
    }
    assert_eq!(found.len(), 14);
    assert_eq!(found.iter().collect::<std::collections::BTreeSet<_>>().len(), 14);
}

#[test]
fn the_root_is_never_cloaked_not_even_as_a_parent() {
    let site = Site::new("rw,insecure,cloak_uid=0:+000,cloak_uid=500:+000");
    let dir = site.dir(b"dir", (7, 7), 0o777);
    let (view, root) = site.guest(7, 7, &[]);
    assert_eq!(view.lookup(&root, b".").unwrap().0.node, root);
    assert_eq!(view.lookup(&root, b"..").unwrap().0.node, root);
    assert_eq!(view.lookup(&dir, b"..").unwrap().0.node, root);
    assert_eq!(view.parent(&dir).unwrap().node, root);
    let sealed = view.seal(&root);
    assert!(site.through(7, 7, &[], Door::Handle(sealed.bytes())).is_ok());
}

#[test]
fn a_group_sees_by_its_digit_and_root_squashed_sees_nothing() {
    let site = Site::new("rw,insecure,cloak_gid=70:+070");
    site.file(b"group", (500, 70), 0o640);
    site.file(b"closed", (500, 70), 0o604);
    let list = |uid, gid, gids: &[u32]| {
        let (view, root) = site.guest(uid, gid, gids);
        names(&view, &root)
    };
    assert_eq!(list(7, 70, &[]), ["group"]);
    assert_eq!(list(7, 7, &[70]), ["group"]);
    assert_eq!(list(7, 7, &[]), [""; 0]);
    assert_eq!(list(0, 0, &[]), [""; 0], "root is squashed");
    assert_eq!(list(500, 7, &[]), ["closed", "group"]);
}

#[test]
fn cloaks_are_judged_by_server_ids() {
    let site = Site::new("rw,insecure,range_map_uid=1000-1999:500-1499,cloak_uid=500:+000");
    site.file(b"f", (500, 7), 0o666);
    let list = |uid| {
        let (view, root) = site.guest(uid, 7, &[]);
        names(&view, &root)
    };
    assert_eq!(list(1000), ["f"], "its owner, whose id is mapped");
    assert_eq!(list(500), [""; 0], "another user, who claims the owner's id");
}

fn times(view: &View<'_>, node: &Node) -> (u32, u32) {
    let attr = view.getattr(node).unwrap();
    (attr.mtime.nanoseconds, attr.ctime.nanoseconds)
}

#[test]
fn without_client_caches_a_directory_looks_changed_in_every_reply() {
    let site = Site::new(&format!("{CLOAK},no_client_cache"));
    let file = site.file(b"f", (7, 7), 0o666);
    let (view, root) = site.guest(7, 7, &[]);
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(times(&view, &root));
        let by_access = view.access(&root, Access::ALL).unwrap().1;
        seen.push((by_access.mtime.nanoseconds, by_access.ctime.nanoseconds));
        let by_lookup = view.lookup(&root, b"f").unwrap().1;
        seen.extend(by_lookup.map(|attr| (attr.mtime.nanoseconds, attr.ctime.nanoseconds)));
        let listed = view.readdir(&root, 0, Listed::Names, &mut |_, _| ControlFlow::Continue(()));
        let listed = listed.unwrap().dir;
        seen.push((listed.mtime.nanoseconds, listed.ctime.nanoseconds));
    }
    let different: std::collections::HashSet<_> = seen.iter().collect();
    assert_eq!(different.len(), seen.len(), "{seen:?}");
    let change = |node| view.getattr(node).unwrap().change;
    assert_ne!(change(&root), change(&root), "clients of NFSv4 look at this alone");
    assert_eq!(change(&file), change(&file));
    let made = view.create(NAMES, &root, b"new", &Create::Guarded(owned(0o600))).unwrap();
    assert!(made.change.before.is_none() && made.change.after.is_some());
    assert_eq!(times(&view, &file), times(&view, &file), "a file's times are its own");
    let plain = Site::new(CLOAK);
    let (view, root) = plain.guest(7, 7, &[]);
    assert_eq!(times(&view, &root), times(&view, &root));
    let made = view.create(NAMES, &root, b"new", &Create::Guarded(owned(0o600))).unwrap();
    assert!(made.change.before.is_some());
}

/// A client serves a delegated file to all its users without asking, whoever opened it.
#[test]
fn without_client_caches_no_file_of_a_cloak_is_delegated_not_even_to_root() {
    for (options, covered) in [("no_root_squash,no_client_cache", false), ("no_root_squash", true)]
    {
        let site = Site::new(&format!("{CLOAK},{options}"));
        site.file(b"plain", (7, 7), 0o666);
        site.file(b"secret", (500, 7), 0o666);
        for (uid, name) in [(0, "secret"), (500, "secret"), (0, "plain"), (7, "plain")] {
            let (view, root) = site.guest(uid, 7, &[]);
            let file = view.lookup(&root, name.as_bytes()).unwrap().0.node;
            let expected = covered || name == "plain";
            assert_eq!(view.may_be_delegated(&file), Ok(expected), "{name} to {uid}, {options}");
        }
    }
}

/// The exception `onto-hidden` of docs/semantics.md does not apply here.
#[test]
fn a_caller_that_may_not_add_names_is_not_told_of_a_hidden_one() {
    let site = Site::new(CLOAK);
    let dir = site.dir(b"closed", (8, 8), 0o755);
    site.file_in(&dir, b"secret", (500, 7), 0o666, &site.admin().0);
    site.file(b"plain", (7, 7), 0o666);
    let (view, root) = site.guest(7, 7, &[]);
    let plain = view.lookup(&root, b"plain").unwrap().0.node;
    for name in [&b"secret"[..], b"missing"] {
        let refused = Err(Status::Acces);
        for how in [Create::Unchecked(owned(0o600)), Create::Exclusive([1; 8])] {
            assert_eq!(view.create(NAMES, &dir, name, &how).map(drop), refused);
        }
        assert_eq!(view.mkdir(NAMES, &dir, name, &owned(0o700)).map(drop), refused);
        assert_eq!(view.symlink(NAMES, &dir, name, b"t", &owned(0o777)).map(drop), refused);
        assert_eq!(view.mknod(NAMES, &dir, name, Special::Fifo, &owned(0o600)).map(drop), refused);
        assert_eq!(view.link(NAMES, &plain, &dir, name).map(drop), refused);
        assert_eq!(view.rename(NAMES, (&root, b"plain"), (&dir, name)).map(drop), refused);
    }
    let exists = view.mkdir(NAMES, &root, b"plain", &owned(0o700)).map(drop);
    assert_eq!(exists, Err(Status::Exist), "a visible name is told of as ever");
}

#[test]
fn a_rename_of_a_hidden_source_fails_like_that_of_a_missing_one() {
    let site = site();
    let dir = site.dir(b"dark", (8, 8), 0o600);
    let (view, root) = site.guest(7, 7, &[]);
    for name in [&b"secret"[..], b"missing"] {
        let renamed = view.rename(NAMES, (&root, name), (&dir, b"new")).map(drop);
        assert_eq!(renamed, Err(Status::Acces), "the target cannot be searched");
    }
}

/// The exception `counts` of docs/semantics.md.
#[test]
fn link_counts_sizes_and_times_of_a_directory_are_those_on_disk() {
    let site = Site::new(CLOAK);
    let dir = site.dir(b"dir", (7, 7), 0o777);
    let (view, _) = site.guest(7, 7, &[]);
    let before = view.getattr(&dir).unwrap();
    let (admin, _) = site.admin();
    let vault = admin.mkdir(NAMES, &dir, b"vault", &owned(0o777)).unwrap().value.node;
    assert_eq!(site::chown(&admin, &vault, 500), Ok(()));
    let after = view.getattr(&dir).unwrap();
    assert_eq!(names(&view, &dir), [""; 0]);
    assert_eq!(after.links, before.links + 1);
    assert!(after.size > before.size && after.ctime > before.ctime && after.mtime > before.mtime);
}

/// The exception `space` of docs/semantics.md.
#[test]
fn the_space_that_is_left_is_that_on_disk() {
    let site = Site::new(CLOAK);
    let (view, root) = site.guest(7, 7, &[]);
    let free = |view: &View<'_>| view.statfs(&root).unwrap().files_free;
    let before = free(&view);
    site.file(b"secret", (500, 7), 0o666);
    assert_eq!(free(&view), before - 1);
}

/// The exception `other-names` of docs/semantics.md.
#[test]
fn a_file_with_a_name_in_a_hidden_directory_outlives_its_visible_name() {
    let site = site();
    let (admin, root) = site.admin();
    let vault = admin.lookup(&root, b"vault").unwrap().0.node;
    let plain = admin.lookup(&root, b"plain").unwrap().0.node;
    admin.link(NAMES, &plain, &vault, b"kept").unwrap();
    let (view, root) = site.guest(7, 7, &[]);
    let sealed = view.seal(&plain);
    assert_eq!(view.getattr(&plain).unwrap().links, 2);
    view.remove(NAMES, &root, b"plain").unwrap();
    assert!(site.through(7, 7, &[], Door::Handle(sealed.bytes())).is_ok());
}

/// The exception `below-hidden` of docs/semantics.md.
#[test]
fn objects_below_a_hidden_directory_are_found_by_handle_only() {
    let site = site();
    let (admin, root) = site.admin();
    let vault = admin.lookup(&root, b"vault").unwrap().0.node;
    let open = admin.mkdir(NAMES, &vault, b"open", &owned(0o777)).unwrap().value.node;
    let (view, root) = site.guest(7, 7, &[]);
    assert_eq!(view.lookup(&root, b"vault").map(drop), Err(Status::NoEnt));
    let sealed = view.seal(&open);
    let (view, open) = site.through(7, 7, &[], Door::Handle(sealed.bytes())).unwrap();
    assert_eq!(view.lookup(&open, b"..").map(drop), Err(Status::NoEnt));
    assert_eq!(view.parent(&open).map(drop), Err(Status::NoEnt));
    let through = view.admit(view.seal(&vault).bytes());
    assert_eq!(through, Err(Status::Stale));
}

/// The exception `long-listing` in docs/semantics.md.
#[test]
fn a_listing_of_thousands_of_hidden_entries_is_cut_and_goes_on() {
    let site = Site::new(CLOAK);
    let (admin, root) = site.admin();
    for number in 0..LISTING_ENTRIES_MAX + 10 {
        site.file_in(&root, format!("h{number}").as_bytes(), (500, 7), 0o600, &admin);
    }
    site.file(b"last", (7, 7), 0o600);
    let list = |cookie, view: &View<'_>, dir: &Node| {
        let mut found = 0;
        let listed = view.readdir(dir, cookie, Listed::Names, &mut |_, _| {
            found += 1;
            ControlFlow::Continue(())
        });
        (found, listed.unwrap().rest)
    };
    let (view, dir) = site.guest(7, 7, &[]);
    let (found, rest) = list(0, &view, &dir);
    assert_eq!(found, 0, "none of the first is the caller's");
    assert_eq!(list(rest.unwrap(), &view, &dir), (1, None));
    assert_eq!(list(0, &admin, &root), (LISTING_ENTRIES_MAX + 11, None), "nothing is hidden");
}

/// The exception `gaps` of docs/semantics.md.
#[test]
fn cookies_in_order_tell_how_many_hidden_entries_stand_between_two_visible_ones() {
    let site = Site::new(CLOAK);
    site.file(b"first", (7, 7), 0o600);
    for number in 0..5 {
        site.file(format!("hidden{number}").as_bytes(), (500, 7), 0o600);
    }
    site.file(b"second", (7, 7), 0o600);
    let (view, root) = site.guest(7, 7, &[]);
    let mut cookies = Vec::new();
    let listed = view.readdir(&root, 0, Listed::Names, &mut |listing, _| {
        cookies.push(listing.cookie);
        ControlFlow::Continue(())
    });
    listed.unwrap();
    assert_eq!(cookies.len(), 2);
    assert_eq!(cookies[1] - cookies[0], 6, "the memory backend counts entries in its cookies");
}

/// The exception `guard` of docs/semantics.md.
#[test]
fn without_client_caches_a_guard_is_compared_with_the_seconds_of_a_directory() {
    let site = Site::new(&format!("{CLOAK},no_client_cache"));
    let dir = site.dir(b"dir", (7, 7), 0o777);
    let file = site.file(b"f", (7, 7), 0o666);
    let (view, _) = site.guest(7, 7, &[]);
    let set = owned(0o700);
    let guarded = |node: &Node, later: (i64, u32)| {
        let shown = view.getattr(node).unwrap().ctime;
        let (seconds, nanoseconds) = (shown.seconds + later.0, shown.nanoseconds + later.1);
        view.setattr(CLEAR, node, &set, Some(Time { seconds, nanoseconds })).map(drop)
    };
    assert_eq!(guarded(&dir, (0, 0)), Ok(()), "what was shown is good");
    assert_eq!(guarded(&dir, (1, 0)), Err(Status::NotSync));
    assert_eq!(guarded(&file, (0, 0)), Ok(()));
    assert_eq!(
        guarded(&file, (0, 1)),
        Err(Status::NotSync),
        "a file's guard is compared with the nanoseconds, too"
    );
}
