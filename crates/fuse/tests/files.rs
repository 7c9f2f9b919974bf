//! Files of a mount as local programs use them.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use comity_vfs::layers::{Faults, Hook, Layer, Metrics, Verb, When};
use comity_vfs::{Create, Cred, Fs, Gid, Handle, Name, SetAttr, Status, Uid};
use rustix::fs::RenameFlags;
use rustix::io::Errno;

use common::{can_mount, kept, memory, mount};

const LONG: Duration = Duration::from_secs(60);

fn open_both(path: &std::path::Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// Lets the kernel forget the pages of a file.
fn drop_pages(path: &std::path::Path) {
    let file = File::open(path).unwrap();
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
fn an_open_file_outlives_its_last_name() {
    if !can_mount() {
        return;
    }
    let mounted = mount(memory(), kept(LONG));
    let dir = mounted.dir.join("dir");
    fs::create_dir(&dir).unwrap();
    let mut file = open_both(&dir.join("file"));
    file.write_all(b"before").unwrap();
    fs::remove_file(dir.join("file")).unwrap();
    assert!(!dir.join("file").exists());
    file.write_all(b" and after").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 16);
    let mut all = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut all).unwrap();
    assert_eq!(all, "before and after");
    drop(file);
    // The file system learns of the close only after close(2) has returned.
    let removed = (0..200).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        fs::remove_dir(&dir).is_ok()
    });
    assert!(removed, "the hidden name is still there");
}

/// Closes a file after each verb that gives it a hidden name, and waits until the mount has closed
/// it, too.
#[derive(Default)]
struct ClosesWhileHidden(Mutex<Option<File>>);

impl Hook for ClosesWhileHidden {
    fn around<T>(
        &self,
        verb: Verb,
        _: &Handle,
        work: impl FnOnce() -> comity_vfs::Result<T>,
    ) -> comity_vfs::Result<T> {
        let done = work();
        if matches!(verb, Verb::Rename | Verb::Link)
            && let Some(file) = self.0.lock().unwrap().take()
        {
            drop(file);
            std::thread::sleep(Duration::from_millis(200));
        }
        done
    }
}

/// Close(2) returns before the mount has closed the file, so a removal that follows finds it open.
#[test]
fn a_file_that_is_closed_while_it_is_removed_keeps_no_hidden_name() {
    if !can_mount() {
        return;
    }
    let hook = Arc::new(ClosesWhileHidden::default());
    let mounted = mount(Arc::new(Layer::new(memory(), Arc::clone(&hook))), kept(LONG));
    let path = mounted.dir.join("file");
    let other = mounted.dir.join("other");
    *hook.0.lock().unwrap() = Some(open_both(&path));
    fs::remove_file(&path).unwrap();
    assert!(hook.0.lock().unwrap().is_none());
    assert_eq!(fs::read_dir(&mounted.dir).unwrap().count(), 0);

    *hook.0.lock().unwrap() = Some(open_both(&path));
    fs::write(&other, "other").unwrap();
    fs::rename(&other, &path).unwrap();
    assert!(hook.0.lock().unwrap().is_none());
    assert_eq!(fs::read_dir(&mounted.dir).unwrap().count(), 1);
}

#[test]
fn an_open_file_outlives_a_rename_over_it() {
    if !can_mount() {
        return;
    }
    let mounted = mount(memory(), kept(LONG));
    let (old, new) = (mounted.dir.join("old"), mounted.dir.join("new"));
    fs::write(&old, "old").unwrap();
    fs::write(&new, "new").unwrap();
    let mut file = File::open(&old).unwrap();
    fs::rename(&new, &old).unwrap();
    let mut read = String::new();
    file.read_to_string(&mut read).unwrap();
    assert_eq!(read, "old");
    assert_eq!(fs::read_to_string(&old).unwrap(), "new");
}

#[test]
fn flags_of_a_rename_that_cannot_be_kept_are_refused() {
    if !can_mount() {
        return;
    }
    let mounted = mount(memory(), kept(LONG));
    let (one, other) = (mounted.dir.join("one"), mounted.dir.join("other"));
    fs::write(&one, "").unwrap();
    let here = rustix::fs::CWD;
    for flags in [RenameFlags::NOREPLACE, RenameFlags::EXCHANGE] {
        let refused = rustix::fs::renameat_with(here, &one, here, &other, flags);
        assert!(matches!(refused, Err(Errno::INVAL | Errno::NOENT)), "{refused:?}");
    }
    assert!(one.exists() && !other.exists());
}

#[test]
fn an_append_goes_to_the_end_that_another_client_has_moved() {
    if !can_mount() {
        return;
    }
    let below = memory();
    let mounted = mount(Arc::clone(&below), kept(LONG));
    let path = mounted.dir.join("log");
    fs::write(&path, "one ").unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let found = below.lookup(&root, &below.root(), Name::new(b"log").unwrap()).unwrap();
    below.write(&root, &found.node.handle, 4, b"two ").unwrap();
    file.write_all(b"three").unwrap();
    drop(file);
    let mut bytes = Vec::new();
    let mut into = comity_vfs::ReadInto::new(&mut bytes);
    below.read(&root, &found.node.handle, 0, 100, &mut into).unwrap();
    assert_eq!(bytes, b"one two three");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two three");
}

#[test]
fn reads_and_writes_are_large() {
    if !can_mount() {
        return;
    }
    const MEBIBYTES: usize = 8;
    let metrics = Arc::new(Metrics::default());
    let below = Arc::new(Layer::new(memory(), Arc::clone(&metrics)));
    let mounted = mount(below, kept(LONG));
    let path = mounted.dir.join("file");
    let data = vec![7; MEBIBYTES << 20];
    let file = open_both(&path);
    assert_eq!(file.write_at(&data, 0).unwrap(), data.len());
    assert_eq!(metrics.sample(Verb::Write).calls, MEBIBYTES as u64);
    drop(file);
    // Reads are answered from the pages that were written.
    assert!(fs::read(&path).unwrap() == data);
    assert_eq!(metrics.sample(Verb::Read).calls, 0);
    drop_pages(&path);
    assert!(fs::read(&path).unwrap() == data);
    let calls = metrics.sample(Verb::Read).calls;
    assert!((1..=3 * MEBIBYTES as u64).contains(&calls), "{calls} reads");
}

#[test]
fn pages_are_kept_over_opens_and_dropped_after_a_change_elsewhere() {
    if !can_mount() {
        return;
    }
    let metrics = Arc::new(Metrics::default());
    let below = Arc::new(Layer::new(memory(), Arc::clone(&metrics)));
    let fs_below: Arc<dyn Fs> = below.clone();
    let mounted = mount(below, kept(Duration::ZERO));
    let path = mounted.dir.join("file");
    fs::write(&path, "one").unwrap();
    let reads = || metrics.sample(Verb::Read).calls;
    for _ in 0..3 {
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
    let before = reads();
    assert!(before <= 1, "a page that was partly written is read once, not {before} times");
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let found = fs_below.lookup(&root, &fs_below.root(), Name::new(b"file").unwrap()).unwrap();
    fs_below.write(&root, &found.node.handle, 0, b"two").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert!(reads() > before);
}

#[test]
fn a_listing_with_attributes_makes_no_lookups() {
    if !can_mount() {
        return;
    }
    let metrics = Arc::new(Metrics::default());
    let below = Arc::new(Layer::new(memory(), Arc::clone(&metrics)));
    let root = Cred::new(Uid::new(0), Gid::new(0));
    // Created in the lower file system, so that the kernel knows none of them.
    for number in 0..500 {
        let name = format!("file-{number}");
        let how = Create::Guarded(SetAttr::default());
        below.create(&root, &below.root(), Name::new(name.as_bytes()).unwrap(), &how).unwrap();
    }
    let mounted = mount(below, kept(LONG));
    let before = metrics.sample(Verb::Lookup).calls;
    let mut inodes = Vec::new();
    for entry in fs::read_dir(&mounted.dir).unwrap() {
        let entry = entry.unwrap();
        let attr = entry.metadata().unwrap();
        assert_eq!(attr.ino(), std::os::unix::fs::DirEntryExt::ino(&entry));
        inodes.push(attr.ino());
    }
    inodes.sort_unstable();
    inodes.dedup();
    assert_eq!(inodes.len(), 500);
    let lookups = metrics.sample(Verb::Lookup).calls - before;
    assert!(lookups < 50, "{lookups} lookups");
}

#[test]
fn a_directory_that_was_read_to_its_end_is_not_asked_again_until_it_is_rewound() {
    if !can_mount() {
        return;
    }
    let metrics = Arc::new(Metrics::default());
    let below: Arc<dyn Fs> = Arc::new(Layer::new(memory(), Arc::clone(&metrics)));
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let make = |name: &str| {
        let how = Create::Guarded(SetAttr::default());
        below.create(&root, &below.root(), Name::new(name.as_bytes()).unwrap(), &how).unwrap();
    };
    let mounted = mount(Arc::clone(&below), kept(LONG));
    let open = File::open(&mounted.dir).unwrap();
    let mut dir = rustix::fs::Dir::read_from(&open).unwrap();
    for count in [0, 1, 2] {
        let before = metrics.sample(Verb::Readdir).calls;
        dir.rewind();
        assert_eq!(dir.by_ref().map(Result::unwrap).count(), 2 + count, "with . and ..");
        assert!(dir.next().is_none(), "nor does the next one come from below");
        assert_eq!(metrics.sample(Verb::Readdir).calls - before, 1, "{count} entries");
        make(&format!("file-{count}"));
    }
}

#[test]
fn a_verb_that_is_delayed_is_waited_for() {
    if !can_mount() {
        return;
    }
    let faults = Faults::new(1).fail(Verb::Lookup, Status::Delay, When::Once(1));
    let mounted = mount(Arc::new(Layer::new(memory(), faults)), kept(LONG));
    let error = fs::metadata(mounted.dir.join("nothing")).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
}

#[test]
fn a_file_system_that_reads_nothing_is_an_error_and_not_zeros() {
    if !can_mount() {
        return;
    }
    let faults = Arc::new(Faults::new(1).fail(Verb::Read, Status::Io, When::Always));
    faults.set_active(false);
    let mounted = mount(Arc::new(Layer::new(memory(), Arc::clone(&faults))), kept(LONG));
    let path = mounted.dir.join("file");
    fs::write(&path, vec![1; 10_000]).unwrap();
    drop_pages(&path);
    faults.set_active(true);
    assert_eq!(fs::read(&path).unwrap_err().raw_os_error(), Some(Errno::IO.raw_os_error()));
    faults.set_active(false);
    assert_eq!(fs::read(&path).unwrap(), vec![1; 10_000]);
}
