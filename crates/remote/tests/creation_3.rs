//! Files that are opened by name over NFS 3, which has no OPEN. The client finds out which are new.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod served;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use comity_backend::{Memory, MemoryOptions};
use comity_remote::{Mounted, NfsVersion};
use comity_vfs::{Create, Fs, Mode, OpenAccess, SetAttr, Status};
use served::{TestServer, TestSettings, cred, file, mode, name, options, root};

fn served() -> (Arc<dyn Fs>, TestServer, Mounted) {
    let of_disk = MemoryOptions { root_mode: Mode::new(0o777), ..Default::default() };
    let disk: Arc<dyn Fs> = Arc::new(Memory::new(of_disk).unwrap());
    let server = TestServer::over(Arc::clone(&disk), TestSettings::default());
    let mut options = options("creation");
    options.versions = (NfsVersion::Three, NfsVersion::Three);
    let mounted = server.mount(options);
    (disk, server, mounted)
}

#[test]
fn an_existing_file_is_not_taken_for_a_new_one_while_others_change_the_directory() {
    let (disk, _server, mounted) = served();
    let there = file(&*disk, "there", b"secret");
    disk.setattr(&root(), &there, &mode(0o600), None).unwrap();
    let (fs, is_over) = (&mounted.fs, AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                file(&*disk, "other", b"");
                disk.remove(&root(), &disk.root(), name("other")).unwrap();
            }
        });
        let (files, create) = (fs.open_files().unwrap(), Create::Unchecked(mode(0o644)));
        let opened = (0..500).find_map(|_| {
            let at = (&fs.root(), name("there"));
            let opened = files.open_name(&cred(5, 5), at, OpenAccess::Both, Some(&create));
            (opened.as_ref().err() != Some(&Status::Acces)).then_some(opened)
        });
        is_over.store(true, Ordering::Relaxed);
        assert!(opened.is_none(), "{opened:?}");
    });
}

#[test]
fn a_new_file_is_open_for_its_maker_whatever_its_mode_and_one_that_is_there_is_cut() {
    let (disk, _server, mounted) = served();
    let (fs, cred) = (&mounted.fs, cred(5, 5));
    let files = fs.open_files().unwrap();
    let create = Create::Unchecked(mode(0o400));
    let open =
        |at: &str, how| files.open_name(&cred, (&fs.root(), name(at)), OpenAccess::Both, Some(how));
    let made = open("new", &create).unwrap().value;
    assert_eq!(made.attr.unwrap().mode, Mode::new(0o400));
    assert_eq!(open("new", &create).unwrap_err(), Status::Acces, "the file is not new any more");
    file(&*disk, "there", b"data");
    let cutting = Create::Unchecked(SetAttr { size: Some(0), ..mode(0o400) });
    let opened = open("there", &cutting).unwrap().value.attr.unwrap();
    assert_eq!((opened.size, opened.mode), (0, Mode::new(0o666)));
}
