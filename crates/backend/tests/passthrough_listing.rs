//! A remembered listing shows the directory as it is now, and descriptors are closed when more than
//! the limit would be open.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use comity_backend::{Descriptors, Passthrough, PassthroughOptions};
use comity_vfs::{Fs, Handle, Listed, Status};

use common::{Entry, Served, list, root, serve, set_mode};

/// Longer than the time for which a directory must be unchanged before its listing is remembered.
const REST: Duration = Duration::from_millis(100);

/// A folder with `count` files of one kind in it, made by another program.
fn folder_of(kind: &str, count: usize) -> Served {
    let served = serve();
    (0..count).for_each(|number| fs::write(path(&served, kind, number), b"old").unwrap());
    served
}

fn path(served: &Served, kind: &str, number: usize) -> PathBuf {
    served.folder.path().join(format!("{kind}-{number}"))
}

/// The folder's entries, after it was listed often enough that its objects are in use.
fn listed_often(served: &Served) -> Vec<Entry> {
    std::thread::sleep(REST);
    (0..4)
        .map(|_| list(&served.fs, &root(), &served.root(), 0, usize::MAX).unwrap())
        .last()
        .unwrap()
}

fn entry<'a>(entries: &'a [Entry], name: &str) -> &'a Entry {
    entries.iter().find(|entry| entry.0 == name.as_bytes()).unwrap()
}

/// The number of descriptors that are open on files of one kind, removed files included.
fn open_files(kind: &str) -> usize {
    let name = format!("/{kind}-");
    let links = fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains(&name)).count()
}

#[test]
fn a_remembered_listing_tells_attributes_as_they_are_now() {
    let served = folder_of("now", 60);
    let elsewhere = tempfile::tempdir_in(served.folder.path().parent().unwrap()).unwrap();
    let link = elsewhere.path().join("link");
    fs::hard_link(path(&served, "now", 3), &link).unwrap();
    listed_often(&served);
    assert!(open_files("now") >= 60, "the objects are in use");
    set_mode(&path(&served, "now", 1), 0o600);
    fs::write(path(&served, "now", 2), b"of another length").unwrap();
    // These two changes do not change the directory itself.
    fs::write(&link, b"by another name").unwrap();
    let ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000);
    fs::File::options()
        .write(true)
        .open(path(&served, "now", 4))
        .unwrap()
        .set_modified(ago)
        .unwrap();
    let entries = list(&served.fs, &root(), &served.root(), 0, usize::MAX).unwrap();
    assert_eq!(entries.len(), 60);
    let attr = |number| entry(&entries, &format!("now-{number}")).2.unwrap().attr;
    assert_eq!(attr(1).mode.bits(), 0o600);
    assert_eq!([2, 3].map(|number| attr(number).size), [17, 15]);
    assert_eq!(attr(4).mtime.seconds, 1_000);
    for (name, _, node) in &entries {
        let node = node.unwrap();
        assert_eq!(served.fs.getattr(&node.handle).unwrap(), node.attr, "{}", name.escape_ascii());
    }
}

#[test]
fn a_name_that_is_given_to_another_object_is_listed_with_that_object() {
    let served = folder_of("name", 40);
    let before = listed_often(&served);
    fs::rename(path(&served, "name", 5), path(&served, "name", 6)).unwrap();
    fs::remove_file(path(&served, "name", 7)).unwrap();
    fs::write(path(&served, "name", 7), b"a new one").unwrap();
    // The changes are seen at once, and also when the directory is remembered again.
    for entries in
        [list(&served.fs, &root(), &served.root(), 0, 99).unwrap(), listed_often(&served)]
    {
        assert_eq!(entries.len(), 39);
        let node = |name| entry(&entries, name).2.unwrap();
        assert_eq!(node("name-6").handle, entry(&before, "name-5").2.unwrap().handle);
        assert_eq!(node("name-7").attr.size, 9);
        for (_, _, node) in &entries {
            let node = node.unwrap();
            assert_eq!(served.fs.getattr(&node.handle).unwrap(), node.attr);
        }
    }
    assert_eq!(open_files("name"), 39, "a removed file is still open");
}

#[test]
fn a_listed_handle_and_its_attributes_are_of_one_object_while_names_are_moved() {
    // With few descriptors most objects are looked up by name, otherwise by an open descriptor.
    for descriptors in [64, 1_000] {
        let served = folder_of("hands", 100);
        let fs = with_descriptors(&served, descriptors);
        std::thread::sleep(REST);
        (0..3).for_each(|_| drop(list(&fs, &root(), &fs.root(), 0, usize::MAX).unwrap()));
        let mut shown = Vec::new();
        let visit = &mut |listing: &comity_vfs::Listing<'_, _>| {
            if shown.len() == 34 {
                (0..100).for_each(|number| change_hands(&served, number));
            }
            shown.push(listing.node);
            ControlFlow::Continue(())
        };
        fs.readdir(&root(), &fs.root(), 0, Listed::Nodes, visit).unwrap();
        for node in shown.into_iter().flatten() {
            match fs.getattr(&node.handle) {
                Ok(attr) => assert_eq!(attr, node.attr),
                Err(gone) => assert_eq!((gone, node.attr.size), (Status::Stale, 3)),
            }
        }
        fs.release_identity().unwrap();
    }
}

/// Gives the name of an old file to a new one.
fn change_hands(served: &Served, number: usize) {
    let (new, name) = (path(served, "new", number), path(served, "hands", number));
    fs::write(&new, b"new and longer").unwrap();
    fs::rename(new, name).unwrap();
}

/// Serves the folder with at most `most` descriptors.
fn with_descriptors(served: &Served, most: usize) -> Passthrough {
    let descriptors = Some(Descriptors::at_most(most));
    let options = PassthroughOptions { descriptors, ..Default::default() };
    Passthrough::open(served.folder.path(), options).unwrap()
}

#[test]
fn listing_takes_objects_into_use_only_while_there_is_much_room() {
    let served = folder_of("roomy", 400);
    let few = with_descriptors(&served, 200);
    std::thread::sleep(REST);
    for _ in 0..5 {
        let entries = list(&few, &root(), &few.root(), 0, usize::MAX).unwrap();
        assert!(entries.len() == 400 && entries.iter().all(|entry| entry.2.is_some()));
    }
    let open = open_files("roomy");
    assert!((60..=110).contains(&open), "{open} of 400");
}

#[test]
fn a_walk_through_more_files_than_can_be_open_leaves_those_in_use() {
    let served = folder_of("walked", 1_000);
    (0..20).for_each(|number| fs::write(path(&served, "busy", number), b"old").unwrap());
    let few = with_descriptors(&served, 128);
    let entries = list(&few, &root(), &few.root(), 0, usize::MAX).unwrap();
    let (busy, walked): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|entry| entry.0.starts_with(b"busy"));
    let ask = |entry: &Entry| {
        let node = entry.2.unwrap();
        assert_eq!(few.getattr(&node.handle).unwrap(), node.attr);
    };
    busy.iter().for_each(ask);
    for _ in 0..3 {
        walked.iter().for_each(ask);
    }
    // By chance, one in some hundreds of the new objects replaces one in use.
    assert!(open_files("busy") >= 15, "{}", open_files("busy"));
    assert!(open_files("walked") <= 130, "{}", open_files("walked"));
    // An object that is asked for twice counts as in use: others are evicted first.
    let last = walked.last().unwrap();
    (0..2).for_each(|_| ask(last));
    let name = String::from_utf8_lossy(&last.0).into_owned();
    let open = |name: &str| {
        fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .any(|target| target.ends_with(name))
    };
    assert!(open(&name), "{name}");
    gone_is_gone(&served, &few, &walked[walked.len() / 2]);
}

fn gone_is_gone(served: &Served, fs: &Passthrough, entry: &Entry) {
    let handle: Handle = entry.2.unwrap().handle;
    let name = String::from_utf8_lossy(&entry.0).into_owned();
    std::fs::remove_file(served.folder.path().join(name)).unwrap();
    (0..3).for_each(|_| assert_eq!(fs.getattr(&handle), Err(Status::Stale)));
}
