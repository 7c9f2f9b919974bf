//! Objects of a served folder are made, found, read, written and removed.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs::Metadata;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use comity_vfs::{
    Create, Device, FileType, Fs, Seek, SetAttr, SetTime, Special, Status, Time, XattrMode,
};
use common::{caller, is_root, list, mode, name, open, read, root, serve};

/// Number of files that are made while another thread looks for them.
const FILES: u32 = 1_000;

#[test]
fn written_values_are_read_again() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let written = served.fs.write(&root(), &file.handle, 3, b"comity").unwrap();
    assert_eq!(written.value, 6);
    assert_eq!(written.change.before.map(|attr| attr.size), Some(0));
    assert_eq!(written.change.after.map(|attr| attr.size), Some(9));
    let (bytes, eof) = read(&served.fs, &root(), &file.handle, 0, 100).unwrap();
    assert_eq!((bytes.as_slice(), eof), (&b"\0\0\0comity"[..], true));
    let (bytes, eof) = read(&served.fs, &root(), &file.handle, 3, 2).unwrap();
    assert_eq!((bytes.as_slice(), eof), (&b"co"[..], false));
    assert_eq!(std::fs::read(served.folder.path().join("file")).unwrap(), b"\0\0\0comity");
}

#[test]
fn every_kind_of_object_is_made_and_told_apart() {
    let served = serve();
    let (fs, top, set) = (&served.fs, served.root(), mode(0o640));
    let made = fs.mkdir(&root(), &top, name(b"dir"), &set).unwrap().value;
    assert_eq!(made.attr.file_type, FileType::Directory);
    let made = fs.symlink(&root(), &top, name(b"link"), b"a/target", &set).unwrap().value;
    assert_eq!(made.attr.file_type, FileType::Symlink);
    assert_eq!(&*fs.readlink(&root(), &made.handle).unwrap().0, b"a/target");
    for (file, special, kind) in [
        (&b"fifo"[..], Special::Fifo, FileType::Fifo),
        (b"socket", Special::Socket, FileType::Socket),
    ] {
        let made = fs.mknod(&root(), &top, name(file), special, &set).unwrap().value;
        assert_eq!((made.attr.file_type, made.attr.mode.bits()), (kind, 0o640));
        // A pipe without a writer would block whoever opens it.
        assert_eq!(read(fs, &root(), &made.handle, 0, 1), Err(Status::Inval));
    }
    if is_root() {
        let device = Device { major: 1, minor: 3 };
        let special = Special::Character(device);
        let made = fs.mknod(&root(), &top, name(b"null"), special, &set).unwrap().value;
        assert_eq!((made.attr.file_type, made.attr.device), (FileType::Character, device));
        let refused = fs.mknod(&caller(1000, 1000), &top, name(b"zero"), special, &set);
        assert_eq!(refused.unwrap_err(), Status::Perm);
    }
}

#[test]
fn a_handle_outlives_renames_and_reopening() {
    let served = serve();
    let file = served.create(&root(), "before", 0o644).unwrap();
    served.fs.write(&root(), &file.handle, 0, b"same").unwrap();
    let top = served.root();
    served.fs.rename(&root(), (&top, name(b"before")), (&top, name(b"after"))).unwrap();
    assert_eq!(served.fs.getattr(&file.handle).unwrap().fileid, file.attr.fileid);
    let again = open(served.folder.path());
    assert_eq!(again.root(), top);
    assert_eq!(read(&again, &root(), &file.handle, 0, 9).unwrap().0, b"same");
    let path = served.folder.path();
    std::fs::rename(path.join("after"), path.join("elsewhere")).unwrap();
    assert_eq!(read(&again, &root(), &file.handle, 0, 9).unwrap().0, b"same");
}

/// The removed files of a folder that this process still has open.
fn held_back(served: &common::Served) -> Vec<String> {
    let folder = served.folder.path().file_name().unwrap().to_str().unwrap();
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| {
            std::fs::read_link(fd.ok()?.path()).ok()?.into_os_string().into_string().ok()
        })
        .filter(|target| target.contains("(deleted)") && target.contains(&format!("{folder}/")))
        .collect()
}

#[test]
fn a_removed_file_is_stale_and_gives_its_space_back() {
    let served = serve();
    // Paths in the server's own mount begin below the folder, so a directory of the same name is
    // made there for `held_back` to find.
    let file_name = served.folder.path().file_name().unwrap().to_str().unwrap().to_owned();
    let dir = served.mkdir(&root(), &file_name, 0o755).unwrap();
    let how = Create::Guarded(mode(0o644));
    let make = |bytes| served.fs.create(&root(), &dir.handle, name(bytes), &how).unwrap().value;
    let (file, over, other) = (make(b"file"), make(b"over"), make(b"other"));
    let change = served.fs.remove(&root(), &dir.handle, name(b"file")).unwrap();
    assert!(change.before.is_some() && change.after.is_some());
    let (source, target) = ((&dir.handle, name(b"other")), (&dir.handle, name(b"over")));
    served.fs.rename(&root(), source, target).unwrap();
    assert_eq!(held_back(&served), Vec::<String>::new());
    for gone in [&file, &over] {
        assert_eq!(served.fs.getattr(&gone.handle), Err(Status::Stale));
    }
    // If another program removes the file, its space is freed when a client next asks for it.
    std::fs::remove_file(served.folder.path().join(&file_name).join("over")).unwrap();
    assert_eq!(held_back(&served).len(), 2, "the object and its data");
    assert_eq!(served.fs.getattr(&other.handle), Err(Status::Stale));
    assert_eq!(held_back(&served), Vec::<String>::new());
}

#[test]
fn a_file_that_others_put_in_place_of_a_new_one_stays() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let served = serve();
    let (theirs, place) = (served.folder.path().join("theirs"), served.folder.path().join("new"));
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let _ = served.create(&root(), "new", 0o644);
            }
        });
        let kept = (0..1_000).all(|_| {
            std::fs::write(&theirs, b"data").unwrap();
            std::fs::rename(&theirs, &place).unwrap();
            std::thread::sleep(std::time::Duration::from_micros(300));
            let kept = std::fs::read(&place).is_ok_and(|bytes| bytes == b"data");
            let _ = std::fs::remove_file(&place);
            kept
        });
        stop.store(true, Ordering::Relaxed);
        assert!(kept, "the server removed another program's file");
    });
}

#[test]
fn a_file_renamed_over_is_stale() {
    let served = serve();
    let old = served.create(&root(), "old", 0o644).unwrap();
    let new = served.create(&root(), "new", 0o644).unwrap();
    let top = served.root();
    served.fs.rename(&root(), (&top, name(b"new")), (&top, name(b"old"))).unwrap();
    assert_eq!(served.fs.getattr(&old.handle), Err(Status::Stale));
    assert_eq!(served.lookup(&root(), "old").unwrap().handle, new.handle);
}

#[test]
fn an_exclusive_create_is_known_again_after_a_restart() {
    let served = serve();
    let how = Create::Exclusive([0x81, 2, 3, 4, 0xf5, 6, 7, 8]);
    let made = served.fs.create(&root(), &served.root(), name(b"file"), &how).unwrap().value;
    let again = open(served.folder.path());
    let retried = again.create(&root(), &again.root(), name(b"file"), &how).unwrap().value;
    assert_eq!(retried.handle, made.handle);
    let other = Create::Exclusive([1; 8]);
    let refused = again.create(&root(), &again.root(), name(b"file"), &other);
    assert_eq!(refused.unwrap_err(), Status::Exist);
}

/// A server that is killed leaves no file that the retry of the call would take for another's.
#[test]
fn a_file_of_an_exclusive_create_is_never_seen_without_its_verifier() {
    let served = serve();
    let verifier = [0, 0, 0, 1, 0, 0, 0, 2];
    let (number, wrong) = (AtomicU32::new(0), AtomicU32::new(0));
    let watch = || {
        while let current @ 0..FILES = number.load(Ordering::Relaxed) {
            let path = served.folder.path().join(current.to_string());
            let is_wrong = |seen: Metadata| (seen.atime(), seen.mtime()) != (1, 2);
            if path.metadata().is_ok_and(is_wrong) {
                wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(watch);
        for current in 0..FILES {
            number.store(current, Ordering::Relaxed);
            let (file, how) = (current.to_string(), Create::Exclusive(verifier));
            served.fs.create(&root(), &served.root(), name(file.as_bytes()), &how).unwrap();
        }
        number.store(FILES, Ordering::Relaxed);
    });
    assert_eq!(wrong.into_inner(), 0, "files were seen without the verifier");
}

#[test]
fn an_unchecked_create_cuts_only_when_told_to() {
    let served = serve();
    let (fs, top) = (&served.fs, served.root());
    let file = served.create(&root(), "file", 0o644).unwrap();
    fs.write(&root(), &file.handle, 0, b"data").unwrap();
    let keep = Create::Unchecked(mode(0o600));
    let found = fs.create(&root(), &top, name(b"file"), &keep).unwrap().value;
    assert_eq!((found.attr.size, found.attr.mode.bits()), (4, 0o644));
    let cut = Create::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    assert_eq!(fs.create(&root(), &top, name(b"file"), &cut).unwrap().value.attr.size, 0);
    served.mkdir(&root(), "dir", 0o755).unwrap();
    assert_eq!(fs.create(&root(), &top, name(b"dir"), &keep).unwrap_err(), Status::Exist);
}

#[test]
fn a_fifo_that_is_there_is_neither_opened_nor_cut() {
    let served = serve();
    let (fs, top) = (&served.fs, served.root());
    fs.mknod(&root(), &top, name(b"fifo"), Special::Fifo, &mode(0o666)).unwrap();
    let cut = Create::Unchecked(SetAttr { size: Some(0), ..SetAttr::default() });
    assert_eq!(fs.create(&root(), &top, name(b"fifo"), &cut).unwrap_err(), Status::Exist);
}

#[test]
fn attributes_are_set_and_guarded() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let time = Time { seconds: 1_000_000_000, nanoseconds: 123_456_789 };
    let set = SetAttr {
        mode: Some(comity_vfs::Mode::new(0o4751)),
        size: Some(5_000_000_000),
        mtime: Some(SetTime::To(time)),
        atime: Some(SetTime::Now),
        ..SetAttr::default()
    };
    let after = served.fs.setattr(&root(), &file.handle, &set, None).unwrap().after.unwrap();
    assert_eq!((after.mode.bits(), after.size, after.mtime), (0o4751, 5_000_000_000, time));
    let guarded = served.fs.setattr(&root(), &file.handle, &mode(0), Some(file.attr.ctime));
    assert_eq!(guarded, Err(Status::NotSync));
    let guarded = served.fs.setattr(&root(), &file.handle, &mode(0o600), Some(after.ctime));
    assert_eq!(guarded.unwrap().after.unwrap().mode.bits(), 0o600);
}

#[test]
fn times_of_a_link_are_set_and_kept() {
    let served = serve();
    let (fs, top) = (&served.fs, served.root());
    let time = Time { seconds: 1_000, nanoseconds: 7 };
    let set = SetAttr {
        atime: Some(SetTime::To(time)),
        mtime: Some(SetTime::To(time)),
        ..SetAttr::default()
    };
    let made = fs.symlink(&root(), &top, name(b"link"), b"nowhere", &SetAttr::default()).unwrap();
    let change = fs.setattr(&root(), &made.value.handle, &set, None).unwrap();
    assert_eq!(change.after.unwrap().atime, time);
    if !is_root() {
        return;
    }
    for fs in [&served.fs, &open(served.folder.path())] {
        let (target, attr) = fs.readlink(&root(), &made.value.handle).unwrap();
        assert_eq!((&*target, attr.atime), (&b"nowhere"[..], time));
        assert_eq!(fs.getattr(&made.value.handle).unwrap().atime, time);
    }
}

#[test]
fn a_listing_shows_every_entry_once_while_others_come_and_go() {
    let served = serve();
    for number in 0..500 {
        served.create(&root(), &format!("stays-{number}"), 0o644).unwrap();
        served.create(&root(), &format!("goes-{number}"), 0o644).unwrap();
    }
    let (mut cookie, mut shown, mut round) = (0, Vec::new(), 0);
    loop {
        let part = list(&served.fs, &root(), &served.root(), cookie, 7).unwrap();
        let Some((_, last, _)) = part.last() else { break };
        cookie = *last;
        shown.extend(part.into_iter().map(|(name, ..)| String::from_utf8(name).unwrap()));
        let path = served.folder.path();
        if round < 500 {
            std::fs::remove_file(path.join(format!("goes-{round}"))).unwrap();
        }
        served.create(&root(), &format!("comes-{round}"), 0o644).unwrap();
        round += 1;
    }
    shown.retain(|name| name.starts_with("stays"));
    shown.sort();
    let count = shown.len();
    shown.dedup();
    assert_eq!((count, shown.len()), (500, 500));
}

#[test]
fn a_listing_of_nodes_tells_what_lookup_and_getattr_tell() {
    let served = serve();
    for number in 0..100 {
        served.create(&root(), &format!("file-{number}"), 0o644).unwrap();
    }
    let again = open(served.folder.path());
    for fs in [&served.fs, &again, &again] {
        let entries = list(fs, &root(), &fs.root(), 0, usize::MAX).unwrap();
        assert_eq!(entries.len(), 100);
        for (bytes, _, node) in entries {
            let found = fs.lookup(&root(), &fs.root(), name(&bytes)).unwrap().node;
            assert_eq!(node, Some(found));
        }
    }
}

#[test]
fn two_listings_do_not_disturb_each_other() {
    let served = serve();
    for number in 0..50 {
        served.create(&root(), &format!("file-{number}"), 0o644).unwrap();
    }
    let whole = list(&served.fs, &root(), &served.root(), 0, usize::MAX).unwrap();
    let (mut one, mut other) = (0, 0);
    for pair in whole.chunks(2) {
        let first = list(&served.fs, &root(), &served.root(), one, 2).unwrap();
        let second = list(&served.fs, &root(), &served.root(), other, 2).unwrap();
        assert_eq!((&first[..], &second[..]), (pair, pair));
        (one, other) = (first[1].1, second[1].1);
    }
}

#[test]
fn large_offsets_and_holes_are_kept() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let far = 1 << 40;
    served.fs.write(&root(), &file.handle, far, b"end").unwrap();
    let attr = served.fs.getattr(&file.handle).unwrap();
    assert_eq!(attr.size, far + 3);
    assert!(attr.used < 1 << 20, "{}", attr.used);
    assert_eq!(read(&served.fs, &root(), &file.handle, far, 9).unwrap(), (b"end".to_vec(), true));
    let data = served.fs.seek(&root(), &file.handle, 0, Seek::Data).unwrap();
    assert!(data > 0 && data <= far, "{data}");
    assert_eq!(served.fs.seek(&root(), &file.handle, 0, Seek::Hole), Ok(0));
    assert_eq!(served.fs.seek(&root(), &file.handle, far + 3, Seek::Data), Err(Status::NoData));
    let refused = served.fs.write(&root(), &file.handle, u64::MAX - 1, b"xyz");
    assert_eq!(refused.unwrap_err(), Status::FBig);
    let refused = served.fs.write(&root(), &file.handle, i64::MAX as u64 - 1, b"xyz");
    assert_eq!(refused.unwrap_err(), Status::FBig);
}

#[test]
fn space_is_allocated_and_given_back() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    served.fs.allocate(&root(), &file.handle, 0, 1 << 20).unwrap();
    let attr = served.fs.getattr(&file.handle).unwrap();
    assert_eq!((attr.size, attr.used >= 1 << 20), (1 << 20, true));
    served.fs.deallocate(&root(), &file.handle, 0, 1 << 20).unwrap();
    let attr = served.fs.getattr(&file.handle).unwrap();
    assert_eq!((attr.size, attr.used), (1 << 20, 0));
}

#[test]
fn ranges_are_copied() {
    let served = serve();
    let from = served.create(&root(), "from", 0o644).unwrap();
    let to = served.create(&root(), "to", 0o644).unwrap();
    served.fs.write(&root(), &from.handle, 0, b"0123456789").unwrap();
    let copied = served.fs.copy(&root(), (&from.handle, 2), (&to.handle, 4), 100).unwrap();
    assert_eq!(copied.value, 8);
    let bytes = read(&served.fs, &root(), &to.handle, 0, 100).unwrap().0;
    assert_eq!(bytes, b"\0\0\0\x0023456789");
}

/// If files cannot share blocks, the status tells clients to copy and not to ask again, and nothing
/// is changed. `conformance` tests file systems whose files can share blocks.
#[test]
fn a_file_system_without_shared_blocks_says_so() {
    let served = serve();
    let from = served.create(&root(), "from", 0o644).unwrap();
    let to = served.create(&root(), "to", 0o644).unwrap();
    served.fs.write(&root(), &from.handle, 0, b"0123456789").unwrap();
    let length =
        |length| served.fs.clone_range(&root(), (&from.handle, 0), (&to.handle, 0), length);
    let (all, too_much) = (length(10).map(drop), length(11).map(drop));
    assert_eq!(too_much, Err(Status::Inval));
    let bytes = read(&served.fs, &root(), &to.handle, 0, 100).unwrap().0;
    match all {
        Ok(()) => assert_eq!(bytes, b"0123456789"),
        Err(status) => assert_eq!((status, &bytes[..]), (Status::NotSupp, &b""[..])),
    }
}

#[test]
fn extended_attributes_are_kept_apart_by_mode() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let (fs, key) = (&served.fs, name(b"colour"));
    let set = |value, how| fs.setxattr(&root(), &file.handle, key, value, how);
    assert_eq!(set(Some(b"x"), XattrMode::Replace), Err(Status::NoXattr));
    set(Some(b"red"), XattrMode::Create).unwrap();
    assert_eq!(set(Some(b"x"), XattrMode::Create), Err(Status::Exist));
    assert_eq!(fs.getxattr(&root(), &file.handle, key).unwrap(), b"red");
    assert_eq!(fs.listxattr(&root(), &file.handle).unwrap(), [Box::from(&b"colour"[..])]);
    set(None, XattrMode::Either).unwrap();
    assert_eq!(fs.getxattr(&root(), &file.handle, key), Err(Status::NoXattr));
}

#[test]
fn an_extended_attribute_has_room_for_its_prefix_in_its_name() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let fs = &served.fs;
    for (length, fits) in [(250, true), (251, false), (255, false)] {
        let key = vec![b'n'; length];
        let set = |value| {
            let done = fs.setxattr(&root(), &file.handle, name(&key), value, XattrMode::Either);
            done.map(drop)
        };
        let outcome = if fits { Ok(()) } else { Err(Status::NameTooLong) };
        assert_eq!(set(Some(b"value")), outcome, "{length}");
        assert_eq!(fs.getxattr(&root(), &file.handle, name(&key)).map(drop), outcome, "{length}");
        assert_eq!(set(None), outcome, "{length}");
    }
}

#[test]
fn a_commit_makes_files_and_directories_stable() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    served.fs.write(&root(), &file.handle, 0, b"data").unwrap();
    assert_eq!(served.fs.commit(&file.handle).unwrap().unwrap().size, 4);
    let top = served.root();
    let attr = served.fs.commit(&top).unwrap().unwrap();
    assert_eq!(attr.file_type, FileType::Directory);
    let set = SetAttr::default();
    let link = served.fs.symlink(&root(), &top, name(b"link"), b"x", &set).unwrap();
    served.fs.commit(&link.value.handle).unwrap();
}

#[test]
fn changes_by_other_programs_are_seen_at_once() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let path = served.folder.path().join("file");
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().write_at(b"abc", 0).unwrap();
    assert_eq!(served.fs.getattr(&file.handle).unwrap().size, 3);
    assert_eq!(read(&served.fs, &root(), &file.handle, 0, 9).unwrap().0, b"abc");
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(served.fs.getattr(&file.handle).unwrap().fileid, path.metadata().unwrap().ino());
}

#[test]
fn a_hard_link_is_another_name() {
    let served = serve();
    let (fs, top) = (&served.fs, served.root());
    let file = served.create(&root(), "file", 0o644).unwrap();
    let linked = fs.link(&root(), &file.handle, &top, name(b"more")).unwrap();
    assert_eq!(linked.value.links, 2);
    assert_eq!(served.lookup(&root(), "more").unwrap().handle, file.handle);
    fs.remove(&root(), &top, name(b"file")).unwrap();
    assert_eq!(fs.getattr(&file.handle).unwrap().links, 1);
    let set = SetAttr::default();
    let link = fs.symlink(&root(), &top, name(b"link"), b"x", &set).unwrap().value;
    fs.link(&root(), &link.handle, &top, name(b"link2")).unwrap();
    assert_eq!(served.lookup(&root(), "link2").unwrap().handle, link.handle);
    let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
    let refused = fs.link(&root(), &dir.handle, &top, name(b"dir2"));
    assert_eq!(refused.unwrap_err(), Status::IsDir);
}

#[test]
fn a_written_and_committed_file_can_be_executed_here() {
    let served = serve();
    let file = served.create(&root(), "script", 0o755).unwrap();
    for _ in 0..3 {
        served.fs.write(&root(), &file.handle, 0, b"#!/bin/sh\nexit 7\n").unwrap();
        served.fs.commit(&file.handle).unwrap();
    }
    served.fs.release_identity().unwrap();
    let program = served.folder.path().join("script");
    let status = std::process::Command::new(program).status().unwrap();
    assert_eq!(status.code(), Some(7));
}
