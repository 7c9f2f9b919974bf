use comity_vfs::layers::Verb;
use comity_vfs::{Access, Fs, OpenAccess, Status};
use std::sync::atomic::Ordering;

use super::{World, cred, name, read, root};
use crate::options::{AttributeTimes, CacheOptions, WriteMode};

fn through() -> CacheOptions {
    CacheOptions { write: WriteMode::Through, ..CacheOptions::default() }
}

fn data(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_file_is_read_once() {
    let world = World::new(through());
    let file = world.file("file", &data(100_000));
    assert_eq!(world.read(&file), data(100_000));
    let before = world.all_calls();
    assert_eq!(world.read(&file), data(100_000));
    assert_eq!(world.all_calls(), before, "no call is made");
    world.pass(10_000);
    let reads = world.calls(Verb::Read);
    assert_eq!(world.read(&file), data(100_000));
    assert_eq!(world.calls(Verb::Read), reads);
    assert_eq!(world.all_calls(), before + 1, "its attributes are fetched");
}

#[test]
fn a_file_is_not_read_again_after_another_start() {
    let world = World::new(through());
    let file = world.file("file", &data(100_000));
    world.read(&file);
    let world = world.again();
    let reads = world.calls(Verb::Read);
    assert_eq!(world.read(&file), data(100_000));
    assert_eq!(world.calls(Verb::Read), reads);
}

#[test]
fn a_delegated_file_is_read_without_any_call() {
    let world = World::new(through());
    let file = world.file("file", &data(50_000));
    world.below.delegates.store(true, Ordering::SeqCst);
    let files = world.cache.open_files().unwrap();
    files.open(&root(), &file, None, OpenAccess::Read).unwrap();
    world.read(&file);
    let before = world.all_calls();
    world.pass(10_000_000);
    assert_eq!(world.read(&file), data(50_000));
    assert_eq!(world.all_calls(), before);
}

/// Another client may have changed the file before the grant without changing its size, so pages
/// from before the grant must be checked.
#[test]
fn a_file_that_was_changed_before_it_was_delegated_is_read_again() {
    let world = World::new(through());
    let file = world.file("file", &data(20_000));
    world.read(&file);
    world.below.delegates.store(true, Ordering::SeqCst);
    let files = world.cache.open_files().unwrap();
    let mut expected = data(20_000);
    for (at, text) in [(5_000, b"changed"), (9_000, b"another")] {
        world.change(&file, at as u64, text);
        files.open(&root(), &file, None, OpenAccess::Read).unwrap();
        expected[at..at + 7].copy_from_slice(text);
        assert!(world.read(&file) == expected, "changed at {at}");
        // The next grant is another delegation.
        world.below.revoke(&file);
    }
}

#[test]
fn partial_files_are_kept_and_completed() {
    let world = World::new(through());
    let file = world.file("file", &data(100_000));
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), &file, 50_000, 100, &mut into).unwrap();
    assert_eq!(bytes, data(100_000)[50_000..50_100]);
    let world = world.again();
    assert_eq!(world.read(&file), data(100_000));
    let metrics = world.cache.counters.miss_bytes.load(Ordering::Relaxed);
    assert!(metrics < 100_000, "the cache fetched {metrics} bytes");
}

/// A regression test for rclone issue 6053.
#[test]
fn no_stale_page_is_read_after_a_change_elsewhere() {
    let world = World::new(through());
    let file = world.file("file", &data(20_000));
    world.read(&file);
    world.change(&file, 5_000, b"changed");
    world.pass(60_000);
    let mut expected = data(20_000);
    expected[5_000..5_007].copy_from_slice(b"changed");
    assert_eq!(world.read(&file), expected);
}

#[test]
fn a_change_in_the_middle_of_a_read_is_noticed() {
    let options = CacheOptions { times: AttributeTimes::NONE, ..through() };
    let world = World::new(options);
    let file = world.file("file", &data(20_000));
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), &file, 0, 5_000, &mut into).unwrap();
    world.change(&file, 0, &[1; 20_000]);
    assert_eq!(world.read(&file), vec![1; 20_000]);
}

#[test]
fn a_read_is_not_put_together_from_two_versions() {
    let world = World::new(through());
    let file = world.file("file", &data(40_000));
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), &file, 0, 5_000, &mut into).unwrap();
    world.change(&file, 0, &[1; 40_000]);
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), &file, 0, 40_000, &mut into).unwrap();
    assert!(bytes == vec![1; 40_000]);
}

#[test]
fn own_writes_leave_the_other_pages() {
    let world = World::new(through());
    let file = world.file("file", &data(100_000));
    world.read(&file);
    let reads = world.calls(Verb::Read);
    let mut expected = data(100_000);
    for at in [0, 50_001, 99_990] {
        world.write(&file, at, b"0123456789");
        expected[at as usize..][..10].copy_from_slice(b"0123456789");
    }
    world.write(&file, 100_000, b"appended");
    expected.extend_from_slice(b"appended");
    assert_eq!(world.read(&file), expected);
    assert_eq!(world.seen(&file), expected);
    assert!(world.calls(Verb::Read) <= reads + 1, "at most the page at the old end is read");
}

#[test]
fn an_own_write_after_another_clients_keeps_no_pages() {
    let world = World::new(through());
    let file = world.file("file", &data(20_000));
    world.read(&file);
    world.change(&file, 9_000, b"theirs");
    world.write(&file, 0, b"ours");
    let mut expected = data(20_000);
    expected[9_000..9_006].copy_from_slice(b"theirs");
    expected[..4].copy_from_slice(b"ours");
    assert_eq!(world.read(&file), expected);
}

#[test]
fn a_page_is_shown_only_to_callers_with_the_right() {
    let world = World::new(through());
    let file = world.file("file", &data(5_000));
    let set = comity_vfs::SetAttr {
        mode: Some(comity_vfs::Mode::new(0o600)),
        ..comity_vfs::SetAttr::default()
    };
    world.cache.setattr(&root(), &file, &set, None).unwrap();
    assert_eq!(world.read(&file).len(), 5_000);
    assert_eq!(read(&world.cache, &cred(7), &file), Err(Status::Acces));
    let rights = |uid| world.cache.access(&cred(uid), &file, Access::READ).unwrap().0;
    assert_eq!((rights(7), rights(0)), (Access::NONE, Access::READ));
    let before = world.all_calls();
    assert_eq!((rights(7), rights(0)), (Access::NONE, Access::READ));
    assert_eq!(world.all_calls(), before, "verdicts are remembered");
    let open = comity_vfs::SetAttr { mode: Some(comity_vfs::Mode::new(0o644)), ..set };
    world.cache.setattr(&root(), &file, &open, None).unwrap();
    assert_eq!(rights(7), Access::READ, "and forgotten with a new mode");
}

#[test]
fn names_are_found_once() {
    let world = World::new(through());
    let file = world.file("file", b"data");
    let dir = world.cache.root();
    let find = |text| world.cache.lookup(&root(), &dir, name(text)).map(|found| found.node.handle);
    world.cache.getattr(&dir).unwrap();
    assert_eq!((find("file"), find("none")), (Ok(file), Err(Status::NoEnt)));
    let before = world.all_calls();
    assert_eq!((find("file"), find("none")), (Ok(file), Err(Status::NoEnt)));
    assert_eq!(world.all_calls(), before);
}

/// A regression test for mountpoint-s3 issue 831.
#[test]
fn a_missing_name_is_not_remembered_for_longer_than_its_directory() {
    let world = World::new(through());
    let dir = world.cache.root();
    let find = |text| world.cache.lookup(&root(), &dir, name(text)).map(|found| found.node.handle);
    world.cache.getattr(&dir).unwrap();
    assert_eq!(find("new"), Err(Status::NoEnt));
    let file = world.file("new", b"");
    world.pass(60_000);
    assert_eq!(find("new"), Ok(file));
}

#[test]
fn own_changes_of_a_directory_are_seen_by_all_callers_at_once() {
    let world = World::new(through());
    let dir = world.cache.root();
    let find = |uid, text| world.cache.lookup(&cred(uid), &dir, name(text)).map(|found| found.node);
    world.cache.getattr(&dir).unwrap();
    assert_eq!(find(7, "new"), Err(Status::NoEnt));
    let how = comity_vfs::Create::Guarded(comity_vfs::SetAttr::default());
    let made = world.cache.create(&root(), &dir, name("new"), &how).unwrap().value.handle;
    assert_eq!(find(7, "new").unwrap().handle, made);
    world.cache.rename(&root(), (&dir, name("new")), (&dir, name("other"))).unwrap();
    assert_eq!(find(7, "new"), Err(Status::NoEnt));
    assert_eq!(find(7, "other").unwrap().handle, made);
    world.cache.remove(&root(), &dir, name("other")).unwrap();
    assert_eq!(find(7, "other"), Err(Status::NoEnt));
    assert_eq!(find(0, "other"), Err(Status::NoEnt));
}

/// A delegated file of 20,000 bytes whose pages are all cached, and another one.
fn delegated_and_cached(world: &World) -> (comity_vfs::Handle, comity_vfs::Handle) {
    let (file, other) = (world.file("file", &[2; 20_000]), world.file("other", &[1; 20_000]));
    world.below.delegates.store(true, Ordering::SeqCst);
    world.cache.open_files().unwrap().open(&root(), &file, None, OpenAccess::Both).unwrap();
    assert_eq!(world.read(&file), [2; 20_000]);
    (file, other)
}

#[test]
fn a_delegated_file_is_read_again_after_a_copy_into_it() {
    for silent in [false, true] {
        let world = World::new(through());
        let (file, other) = delegated_and_cached(&world);
        world.below.silent.store(silent, Ordering::SeqCst);
        world.cache.copy(&root(), (&other, 0), (&file, 4_096), 10_000).unwrap();
        let mut expected = vec![2; 20_000];
        expected[4_096..14_096].fill(1);
        assert!(world.read(&file) == expected, "copied, silent: {silent}");
        world.cache.clone_range(&root(), (&other, 0), (&file, 0), 20_000).unwrap();
        assert!(world.read(&file) == [1; 20_000], "cloned, silent: {silent}");
    }
}

#[test]
fn a_delegated_file_is_read_again_after_a_hole_was_punched() {
    for silent in [false, true] {
        let world = World::new(through());
        let (file, _) = delegated_and_cached(&world);
        world.below.silent.store(silent, Ordering::SeqCst);
        world.cache.deallocate(&root(), &file, 4_096, 4_096).unwrap();
        let mut expected = vec![2; 20_000];
        expected[4_096..8_192].fill(0);
        assert!(world.read(&file) == expected, "silent: {silent}");
    }
}

#[test]
fn a_delegated_file_that_was_cut_and_grew_again_is_read_again() {
    let world = World::new(through());
    let (file, _) = delegated_and_cached(&world);
    world.below.silent.store(true, Ordering::SeqCst);
    for size in [0, 20_000] {
        let set = comity_vfs::SetAttr { size: Some(size), ..Default::default() };
        world.cache.setattr(&root(), &file, &set, None).unwrap();
    }
    assert!(world.read(&file) == [0; 20_000]);
}

/// A regression test for juicefs pull request 5125.
#[test]
fn reads_work_although_the_cache_disk_fails() {
    let world = World::new(through());
    let file = world.file("file", &data(50_000));
    world.read(&file);
    world.medium.fail_after(3);
    for _ in 0..20 {
        assert_eq!(world.read(&file), data(50_000));
    }
    world.write(&file, 0, b"x");
    assert!(!world.cache.store.health().is_usable());
    assert_eq!(&world.seen(&file)[..2], b"x\x01");
}

#[test]
fn a_damaged_page_is_read_again() {
    let world = World::new(through());
    let file = world.file("file", &data(50_000));
    world.read(&file);
    let path = world.cache.file(&file).paths().data;
    crate::medium::Medium::write(world.medium.as_ref(), &path, 8_192, &[0; 300]).unwrap();
    assert_eq!(world.read(&file), data(50_000));
    assert!(world.cache.store.health().damaged() > 0);
}

fn pieces_of(world: &World, file: &comity_vfs::Handle) {
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), file, 0, 10_000, &mut into).unwrap();
}

#[test]
fn the_filler_completes_files_while_no_program_reads() {
    let world = World::new(through());
    let large = world.file("large", &data(3_000_000));
    let small = world.file("small", &data(50_000));
    pieces_of(&world, &large);
    pieces_of(&world, &small);
    world.cache.tick();
    let missing = |node| world.cache.store.missing(&world.cache.file(node));
    assert!(missing(&small) > 0, "a program has just read");
    world.pass(3_000);
    world.cache.tick();
    assert_eq!(missing(&small), 0, "the file with the fewest missing pages is filled first");
    assert!(missing(&large) > 700);
    (0..6).for_each(|_| world.cache.tick());
    assert_eq!(missing(&large), 0);
    let reads = world.calls(Verb::Read);
    assert_eq!(world.read(&large), data(3_000_000));
    assert_eq!(world.calls(Verb::Read), reads);
}

#[test]
fn a_file_is_filled_on_demand_with_progress() {
    let world = World::new(through());
    let file = world.file("file", &data(2_500_000));
    let mut heard = Vec::new();
    let mut progress = |done, total| {
        heard.push((done, total));
        std::ops::ControlFlow::Continue(())
    };
    world.cache.fill(&root(), &file, &mut progress).unwrap();
    assert_eq!(heard.last(), Some(&(2_500_000, 2_500_000)));
    assert_eq!(heard.len(), 3);
    let reads = world.calls(Verb::Read);
    assert_eq!(world.read(&file), data(2_500_000));
    assert_eq!(world.calls(Verb::Read), reads);
}

#[test]
fn the_filler_leaves_a_file_that_the_cache_disk_does_not_take() {
    let world = World::new(through());
    let file = world.file("file", &data(3_000_000));
    pieces_of(&world, &file);
    world.medium.set_full(true);
    world.pass(3_000);
    (0..10).for_each(|_| world.cache.tick());
    assert!(world.calls(Verb::Read) <= 3, "{} reads", world.calls(Verb::Read));
    world.medium.set_full(false);
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    world.cache.read(&root(), &file, 100_000, 10_000, &mut into).unwrap();
    world.pass(3_000);
    (0..10).for_each(|_| world.cache.tick());
    assert!(world.cache.store.missing(&world.cache.file(&file)) < 700, "filling continues later");
}

#[test]
fn the_status_estimates_the_bytes_on_the_disk() {
    let world = World::new(through());
    let (file, other) = (world.file("file", &data(100_000)), world.file("other", &data(50_000)));
    world.cache.tick();
    let bytes = || world.cache.status().disk_bytes;
    assert_eq!(bytes(), 0);
    world.read(&file);
    world.read(&other);
    assert!((150_000..170_000).contains(&bytes()), "{}", bytes());
    world.cache.drop_file(&file);
    assert!((50_000..60_000).contains(&bytes()), "{}", bytes());
    world.pass(3_600_000);
    (0..3).for_each(|_| world.cache.tick());
    assert!((50_000..60_000).contains(&bytes()), "{}", bytes());
}

/// A regression test for rclone issue 9530.
#[test]
fn a_file_is_not_empty_while_the_server_is_away() {
    let world = World::new(through());
    let file = world.file("file", &data(20_000));
    world.cache.getattr(&file).unwrap();
    world.below.cut();
    assert_eq!(read(&world.cache, &root(), &file), Err(Status::Io));
    world.pass(600_000);
    assert_eq!(world.cache.getattr(&file), Err(Status::Io));
    assert_eq!(read(&world.cache, &root(), &file), Err(Status::Io));
    world.below.mend();
    assert_eq!(world.read(&file), data(20_000));
}

#[test]
fn cached_data_are_served_offline_if_that_is_wanted() {
    let world = World::new(CacheOptions { offline: true, ..through() });
    let file = world.file("file", &data(20_000));
    let dir = world.cache.root();
    world.cache.getattr(&dir).unwrap();
    world.cache.lookup(&root(), &dir, name("file")).unwrap();
    world.read(&file);
    world.below.cut();
    world.pass(600_000);
    let found = world.cache.lookup(&root(), &dir, name("file")).unwrap().node;
    assert_eq!((found.handle, found.attr.size), (file, 20_000));
    assert_eq!(world.read(&file), data(20_000));
    assert_eq!(read(&world.cache, &cred(7), &file), Err(Status::Io), "never granted");
    let missing = world.cache.lookup(&root(), &dir, name("other"));
    assert_eq!(missing.map(|found| found.node.handle), Err(Status::Io), "never \"deleted\"");
    assert_eq!(world.cache.write(&root(), &file, 0, b"x").map(|w| w.value), Err(Status::Io));
}

/// Regression test for mountpoint-s3 issue 1251 and rclone issue 5348.
#[test]
fn opening_a_cache_costs_the_same_whatever_it_holds() {
    let world = World::new(through());
    for number in 0..300 {
        let file = world.file(&format!("file-{number}"), b"data");
        world.read(&file);
    }
    let before = world.medium.calls();
    let world = world.again();
    assert!(world.medium.calls() - before <= 2, "only the journal is read");
}

/// A regression test for rclone issue 5355, a deadlock between eviction and upload.
#[test]
fn eviction_does_not_block_writes() {
    let options = CacheOptions { bytes_max: 50_000, ..CacheOptions::default() };
    let world = World::new(options);
    let files: Vec<_> = (0..4).map(|n| world.file(&format!("file-{n}"), &data(30_000))).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let workers: Vec<_> =
            files.iter().map(|file| scope.spawn(|| work_on(&world, file))).collect();
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                world.pass(1_000);
                world.cache.tick();
            }
        });
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        done.store(true, Ordering::Release);
    });
}

/// Alternately writes and reads a file.
fn work_on(world: &World, file: &comity_vfs::Handle) {
    let mut expected = data(30_000);
    for round in 0..100_u8 {
        let at = usize::from(round) * 290;
        world.write(file, at as u64, &[round; 300]);
        expected[at..at + 300].fill(round);
        assert!(world.read(file) == expected, "round {round}");
        if round % 7 == 0 {
            world.cache.commit(file).unwrap();
            assert!(world.seen(file) == expected);
        }
    }
}
