use comity_vfs::Handle;

use super::*;
use crate::memory_medium::MemoryMedium;

const PAGE: usize = PAGE_BYTES as usize;

fn file(name: &[u8]) -> FileName {
    FileName { volume: 1, handle: Handle::new(name).unwrap() }
}

fn store(medium: &Arc<MemoryMedium>) -> PageStore {
    PageStore::new(Arc::clone(medium) as Arc<dyn Medium>, Arc::new(|| 1_000))
}

fn version(change: u64, size: usize) -> FileVersion {
    FileVersion { change, size: size as u64 }
}

/// Reads the cached bytes from `start` on, or returns the number of missing ones.
fn read(store: &PageStore, epoch: Epoch, range: Range<usize>) -> Result<Vec<u8>, u64> {
    let mut bytes = Vec::new();
    let range = range.start as u64..range.end as u64;
    match store.read(&file(b"a"), epoch, range, &mut bytes) {
        PageRun::Hit(count) => {
            assert_eq!(count, bytes.len() as u64);
            Ok(bytes)
        }
        PageRun::Miss(count) => Err(count),
    }
}

#[test]
fn pages_are_read_back_even_after_a_restart() {
    let medium = Arc::new(MemoryMedium::default());
    let data: Vec<u8> = (0..3 * PAGE + 100).map(|at| (at % 251) as u8).collect();
    let first = store(&medium);
    let epoch = first.enter(&file(b"a"), version(1, data.len()));
    assert_eq!(read(&first, epoch, 0..data.len()), Err(data.len() as u64));
    first.fill(&file(b"a"), epoch, PAGE as u64, &data[PAGE..]);
    assert_eq!(read(&first, epoch, 0..data.len()), Err(PAGE as u64));
    assert_eq!(read(&first, epoch, PAGE..data.len()), Ok(data[PAGE..].to_vec()));
    let second = store(&medium);
    let again = second.enter(&file(b"a"), version(1, data.len()));
    assert_eq!(read(&second, again, PAGE..2 * PAGE + 5), Ok(data[PAGE..2 * PAGE + 5].to_vec()));
    assert_eq!(second.version(&file(b"b")), None);
}

#[test]
fn pages_of_another_version_are_dropped() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let old = store.enter(&file(b"a"), version(1, PAGE));
    store.fill(&file(b"a"), old, 0, &[1; PAGE]);
    let new = store.enter(&file(b"a"), version(2, PAGE));
    assert_eq!(read(&store, new, 0..PAGE), Err(PAGE as u64));
    assert_eq!(read(&store, old, 0..PAGE), Err(PAGE as u64));
    store.fill(&file(b"a"), old, 0, &[1; PAGE]);
    assert_eq!(
        read(&store, new, 0..PAGE),
        Err(PAGE as u64),
        "data of an earlier version was stored"
    );
}

#[test]
fn a_damaged_page_counts_as_missing() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let epoch = store.enter(&file(b"a"), version(1, 3 * PAGE));
    store.fill(&file(b"a"), epoch, 0, &[7; 3 * PAGE]);
    medium.write(&file(b"a").paths().data, PAGE as u64 + 9, &[0]).unwrap();
    assert_eq!(read(&store, epoch, 0..3 * PAGE), Ok(vec![7; PAGE]));
    assert_eq!(read(&store, epoch, PAGE..3 * PAGE), Err(PAGE as u64));
    assert_eq!(read(&store, epoch, 2 * PAGE..3 * PAGE), Ok(vec![7; PAGE]));
    assert_eq!(store.health().damaged(), 2);
}

#[test]
fn a_file_with_a_damaged_map_is_not_cached() {
    let medium = Arc::new(MemoryMedium::default());
    let first = store(&medium);
    let epoch = first.enter(&file(b"a"), version(1, PAGE));
    first.fill(&file(b"a"), epoch, 0, &[7; PAGE]);
    medium.write(&file(b"a").paths().map, 80, &[9]).unwrap();
    assert_eq!(store(&medium).version(&file(b"a")), None);
}

#[test]
fn own_changes_keep_the_other_pages() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let epoch = store.enter(&file(b"a"), version(1, 2 * PAGE + 10));
    store.fill(&file(b"a"), epoch, 0, &[7; 2 * PAGE + 10]);
    let longer = version(2, 2 * PAGE + 20);
    assert!(store.carry(&file(b"a"), 1, longer).is_some());
    let mut longer = vec![7; 2 * PAGE + 10];
    longer.resize(2 * PAGE + 20, 0);
    assert_eq!(read(&store, epoch, 0..2 * PAGE + 20), Ok(longer));
    let shorter = version(3, PAGE);
    assert!(store.carry(&file(b"a"), 2, shorter).is_some());
    assert!(store.carry(&file(b"a"), 3, version(4, 2 * PAGE)).is_some());
    assert_eq!(read(&store, epoch, 0..PAGE), Ok(vec![7; PAGE]));
    assert_eq!(
        read(&store, epoch, PAGE..2 * PAGE),
        Err(PAGE as u64),
        "a page beyond the end was read"
    );
    assert_eq!(
        store.carry(&file(b"a"), 9, version(10, PAGE)),
        None,
        "another client changed the file"
    );
}

#[test]
fn no_page_is_older_than_an_own_change_after_a_crash() {
    let (old, new) = ([1; PAGE], [2; PAGE]);
    let mut kept = 0;
    for seed in 0..300 {
        let medium = Arc::new(MemoryMedium::default());
        let first = store(&medium);
        let epoch = first.enter(&file(b"a"), version(1, 2 * PAGE));
        first.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
        medium.settle();
        let epoch = first.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
        first.fill(&file(b"a"), epoch, 0, &new);
        if seed % 2 == 0 {
            first.save();
        }
        medium.crash(seed);
        let second = store(&medium);
        let epoch = second.enter(&file(b"a"), version(2, 2 * PAGE));
        for (page, content) in [(0, new), (1, old)] {
            if let Ok(bytes) = read(&second, epoch, page * PAGE..(page + 1) * PAGE) {
                assert_eq!(bytes, content, "seed {seed}, page {page}");
                kept += 1;
            }
        }
    }
    assert!(kept > 50, "{kept} pages survived");
}

#[test]
fn a_page_that_was_written_only_below_is_not_read_after_a_crash() {
    for seed in 0..100 {
        let medium = Arc::new(MemoryMedium::default());
        let first = store(&medium);
        let epoch = first.enter(&file(b"a"), version(1, 2 * PAGE));
        first.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
        medium.settle();
        first.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
        first.drop_pages(&file(b"a"), &(0..10));
        first.save();
        medium.crash(seed);
        let second = store(&medium);
        let epoch = second.enter(&file(b"a"), version(2, 2 * PAGE));
        assert_eq!(read(&second, epoch, 0..PAGE), Err(PAGE as u64), "seed {seed}");
    }
}

#[test]
fn an_evicted_file_takes_no_space() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let epoch = store.enter(&file(b"a"), version(1, PAGE));
    store.fill(&file(b"a"), epoch, 0, &[7; PAGE]);
    assert!(store.evict(&file(b"a")) >= PAGE as u64);
    assert_eq!(read(&store, epoch, 0..PAGE), Err(PAGE as u64));
    assert_eq!(medium.used(&file(b"a").paths().data).unwrap(), 0);
}

#[test]
fn no_page_of_an_earlier_version_is_read_after_a_crash() {
    for seed in 0..300 {
        let medium = Arc::new(MemoryMedium::default());
        let first = store(&medium);
        let old = first.enter(&file(b"a"), version(1, 4 * PAGE));
        first.fill(&file(b"a"), old, 0, &[1; 4 * PAGE]);
        medium.settle();
        let new = first.enter(&file(b"a"), version(2, 4 * PAGE));
        first.fill(&file(b"a"), new, 2 * PAGE as u64, &[2; PAGE]);
        medium.crash(seed);
        let second = store(&medium);
        let epoch = second.enter(&file(b"a"), version(2, 4 * PAGE));
        for page in 0..4 {
            if let Ok(bytes) = read(&second, epoch, page * PAGE..(page + 1) * PAGE) {
                assert_eq!(bytes, vec![2; PAGE], "seed {seed}, page {page}");
                assert_eq!(page, 2);
            }
        }
    }
}

/// When a file that was used long ago is used again, its header is written to store the time.
#[test]
fn no_stale_page_is_read_after_a_crash_although_its_use_was_stored() {
    let new = [2; PAGE];
    for seed in 0..300 {
        let medium = Arc::new(MemoryMedium::default());
        let seconds = Arc::new(AtomicU64::new(1));
        let clock = Arc::clone(&seconds);
        let clock: Clock = Arc::new(move || clock.load(Ordering::Relaxed) * 1_000);
        let first = PageStore::new(Arc::clone(&medium) as Arc<dyn Medium>, clock);
        let epoch = first.enter(&file(b"a"), version(1, 3 * PAGE));
        first.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
        medium.settle();
        seconds.store(2 * USE_GRAIN_SECONDS, Ordering::Relaxed);
        first.carry(&file(b"a"), 1, version(2, 3 * PAGE)).unwrap();
        first.drop_pages(&file(b"a"), &(0..PAGE as u64));
        let epoch = first.enter(&file(b"a"), version(2, 3 * PAGE));
        first.fill(&file(b"a"), epoch, 2 * PAGE as u64, &new);
        medium.crash(seed);
        let second = store(&medium);
        let epoch = second.enter(&file(b"a"), version(2, 3 * PAGE));
        assert!(read(&second, epoch, 0..PAGE) == Err(PAGE as u64), "seed {seed}");
    }
}

#[test]
fn an_answer_from_before_an_own_change_is_not_kept() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let asked = store.enter(&file(b"a"), version(1, 2 * PAGE));
    let carried = store.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
    store.overwrite(&file(b"a"), carried, 0, &[2; PAGE]);
    store.fill(&file(b"a"), asked, 0, &[1; 2 * PAGE]);
    let now = store.enter(&file(b"a"), version(2, 2 * PAGE));
    assert!(read(&store, now, 0..PAGE) == Ok(vec![2; PAGE]));
}

#[test]
fn a_huge_sparse_file_is_cut_within_little_memory() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let huge = i64::MAX as u64;
    let epoch = store.enter(&file(b"a"), FileVersion { change: 1, size: huge });
    store.fill(&file(b"a"), epoch, 0, &[7; 3 * PAGE]);
    store.drop_pages(&file(b"a"), &(2 * PAGE as u64..huge));
    assert!(read(&store, epoch, 0..3 * PAGE) == Ok(vec![7; 2 * PAGE]));
    assert!(store.carry(&file(b"a"), 1, version(2, PAGE)).is_some());
    assert_eq!(store.missing(&file(b"a")), 0);
    let again = FileVersion { change: 3, size: huge };
    let epoch = store.carry(&file(b"a"), 2, again).unwrap();
    assert_eq!(
        read(&store, epoch, PAGE..2 * PAGE),
        Err(PAGE as u64),
        "a page beyond the end was read"
    );
    let gap = store.first_missing(&file(b"a"), epoch).unwrap();
    assert_eq!(gap.start, PAGE as u64);
}

#[test]
fn damaged_pages_are_found_in_steps_and_dropped() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let names: Vec<Vec<u8>> = (0..20_u8).map(|number| vec![number]).collect();
    for name in &names {
        let epoch = store.enter(&file(name), version(1, 600 * PAGE));
        store.fill(&file(name), epoch, PAGE as u64, &[7; 500 * PAGE]);
    }
    for name in &names[..3] {
        medium.write(&file(name).paths().data, 9 * PAGE as u64, &[0]).unwrap();
    }
    let (mut place, mut steps, mut total) = (Some(VerifyPlace::default()), 0, Verified::default());
    while let Some(here) = place {
        let mut count = Verified::default();
        place = store.verify(&here, &mut count);
        total.files += count.files;
        total.pages += count.pages;
        total.damaged += count.damaged;
        steps += 1;
    }
    assert_eq!(total, Verified { files: 20, pages: 10_000, damaged: 3 });
    assert!(steps > 1);
    let mut again = Verified::default();
    store.verify(&VerifyPlace::default(), &mut again);
    assert_eq!(again.damaged, 0);
}

/// A disk may take no more writes, but still be read: it was mounted read-only after an error, or
/// is full and copies what it overwrites.
#[test]
fn a_page_that_could_not_be_overwritten_is_not_read_again() {
    for part in [PAGE, 100] {
        let medium = Arc::new(MemoryMedium::default());
        let store = store(&medium);
        let epoch = store.enter(&file(b"a"), version(1, 2 * PAGE));
        store.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
        medium.set_read_only(true);
        let epoch = store.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
        store.overwrite(&file(b"a"), epoch, 0, &vec![2; part]);
        let epoch = store.enter(&file(b"a"), version(2, 2 * PAGE));
        assert!(read(&store, epoch, 0..PAGE).is_err(), "{part} bytes");
    }
}

#[test]
fn pages_that_could_not_be_dropped_or_cut_are_not_read_again() {
    let medium = Arc::new(MemoryMedium::default());
    let store = store(&medium);
    let epoch = store.enter(&file(b"a"), version(1, 3 * PAGE));
    store.fill(&file(b"a"), epoch, 0, &[1; 3 * PAGE]);
    medium.set_read_only(true);
    store.drop_pages(&file(b"a"), &(0..PAGE as u64));
    let epoch = store.enter(&file(b"a"), version(1, 3 * PAGE));
    assert!(read(&store, epoch, 0..PAGE).is_err(), "it was dropped");
    medium.set_read_only(false);
    store.fill(&file(b"a"), epoch, 0, &[1; 3 * PAGE]);
    medium.set_read_only(true);
    store.carry(&file(b"a"), 1, version(2, PAGE)).unwrap();
    store.carry(&file(b"a"), 2, version(3, 3 * PAGE)).unwrap();
    let epoch = store.enter(&file(b"a"), version(3, 3 * PAGE));
    assert!(read(&store, epoch, PAGE..2 * PAGE).is_err(), "it was cut, and has zeros now");
}

#[test]
fn no_read_of_a_file_that_was_cut_finds_nothing_missing() {
    let store = store(&Arc::new(MemoryMedium::default()));
    let epoch = store.enter(&file(b"a"), version(1, 3 * PAGE));
    store.carry(&file(b"a"), 1, version(2, 0)).unwrap();
    assert_eq!(read(&store, epoch, PAGE..2 * PAGE), Err(PAGE as u64));
}

/// A write of many pages changes them one by one.
#[test]
fn no_header_is_written_in_the_middle_of_an_own_change() {
    let medium = Arc::new(MemoryMedium::default());
    let first = store(&medium);
    let epoch = first.enter(&file(b"a"), version(1, 2 * PAGE));
    first.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
    let change = first.begin_change(&file(b"a"));
    let epoch = first.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
    first.overwrite(&file(b"a"), epoch, 0, &[2; PAGE]);
    first.save();
    assert_eq!(store(&medium).version(&file(b"a")), Some(version(1, 2 * PAGE)));
    first.overwrite(&file(b"a"), epoch, PAGE as u64, &[2; PAGE]);
    drop(change);
    first.save();
    let after = store(&medium);
    let epoch = after.enter(&file(b"a"), version(2, 2 * PAGE));
    assert_eq!(read(&after, epoch, 0..2 * PAGE), Ok(vec![2; 2 * PAGE]));
}

#[test]
fn pages_of_a_file_without_own_changes_outlive_a_lock() {
    let store = store(&Arc::new(MemoryMedium::default()));
    let epoch = store.enter(&file(b"a"), version(1, 2 * PAGE));
    store.fill(&file(b"a"), epoch, 0, &[1; 2 * PAGE]);
    store.restart_if_carried(&file(b"a"));
    assert_eq!(read(&store, epoch, 0..PAGE), Ok(vec![1; PAGE]));
    let epoch = store.carry(&file(b"a"), 1, version(2, 2 * PAGE)).unwrap();
    store.restart_if_carried(&file(b"a"));
    assert_eq!(read(&store, epoch, 0..PAGE), Err(PAGE as u64));
    let epoch = store.enter(&file(b"a"), version(2, 2 * PAGE));
    assert_eq!(read(&store, epoch, 0..PAGE), Err(PAGE as u64));
}
