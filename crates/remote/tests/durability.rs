//! Data that a server loses in a restart because it was not committed are written again.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod served;

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_remote::{Mounted, NfsVersion};
use comity_vfs::{Cred, Disk, Fs, Handle, Mode, OpenAccess, ReadInto, SetAttr, Status};
use served::{TestServer, TestSettings, cred, eventually, file, name, options, root};

/// A server, its file system, and a client.
struct Trial {
    server: TestServer,
    disk: Arc<dyn Fs>,
    mounted: Mounted,
    cred: Cred<Disk>,
}

impl Trial {
    fn new() -> Self {
        Self::speaking(NfsVersion::FourTwo)
    }

    fn speaking(version: NfsVersion) -> Self {
        let options_of_disk = MemoryOptions { root_mode: Mode::new(0o777), ..Default::default() };
        let disk: Arc<dyn Fs> = Arc::new(Memory::new(options_of_disk).unwrap());
        file(&*disk, "f", b"");
        let server = TestServer::over(Arc::clone(&disk), TestSettings::default());
        let mut options = options("durability");
        options.versions = (version, version);
        let mounted = server.mount(options);
        Self { server, disk, mounted, cred: cred(5, 5) }
    }

    fn file(&self) -> Handle {
        let fs = &self.mounted.fs;
        fs.lookup(&self.cred, &fs.root(), name("f")).unwrap().node.handle
    }

    fn write(&self, at: u64, data: &[u8]) {
        let written = self.mounted.fs.write(&self.cred, &self.file(), at, data).unwrap();
        assert_eq!(written.value as usize, data.len());
    }

    /// Restarts the server, which loses the data that were not committed.
    fn lose(&mut self) {
        self.server.stop();
        let found = self.disk.lookup(&root(), &self.disk.root(), name("f")).unwrap().node;
        let empty = SetAttr { size: Some(0), ..SetAttr::default() };
        self.disk.setattr(&root(), &found.handle, &empty, None).unwrap();
        self.server.resume();
    }

    fn on_disk(&self) -> Vec<u8> {
        let found = self.disk.lookup(&root(), &self.disk.root(), name("f")).unwrap().node;
        let mut bytes = Vec::new();
        self.disk.read(&root(), &found.handle, 0, 1 << 20, &mut ReadInto::new(&mut bytes)).unwrap();
        bytes
    }
}

#[test]
fn a_commit_writes_again_what_the_server_has_lost() {
    let versions = [NfsVersion::Three, NfsVersion::FourTwo];
    versions.into_iter().for_each(|version| write_again(Trial::speaking(version)));
}

fn write_again(mut trial: Trial) {
    trial.write(0, b"first, ");
    trial.write(7, b"second");
    trial.lose();
    assert_eq!(trial.on_disk(), b"");
    let attr = trial.mounted.fs.commit(&trial.file()).unwrap().unwrap();
    assert_eq!(attr.size, 13);
    assert_eq!(trial.on_disk(), b"first, second");
    trial.lose();
    trial.mounted.fs.commit(&trial.file()).unwrap();
    assert_eq!(trial.on_disk(), b"", "committed data are not kept");
}

/// knfsd answers so until it has mounted its disks.
#[test]
fn data_is_kept_while_a_server_that_has_restarted_does_not_know_the_file_system() {
    let mut trial = Trial::speaking(NfsVersion::Three);
    trial.write(0, b"first, ");
    trial.write(7, b"second");
    let file = trial.file();
    trial.lose();
    trial.server.stop();
    let other: Arc<dyn Fs> = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let disk = trial.server.exchange(other);
    trial.server.resume();
    assert_eq!(trial.mounted.fs.commit(&file), Err(Status::Io));
    trial.server.stop();
    trial.server.exchange(disk);
    trial.server.resume();
    assert!(trial.mounted.fs.commit(&file).unwrap().is_some());
    assert_eq!(trial.on_disk(), b"first, second");
}

/// While the server reclaims, no other client changes the file.
#[test]
fn a_delegation_that_is_reclaimed_is_the_same_one() {
    let mut trial = Trial::new();
    let (file, fs) = (trial.file(), Arc::clone(&trial.mounted.fs));
    let files = fs.open_files().unwrap();
    files.open(&trial.cred, &file, None, OpenAccess::Both).unwrap();
    let granted = files.file_grant(&file);
    assert!(granted.is_some(), "it is delegated");
    trial.server.restart();
    fs.getattr(&fs.root()).unwrap();
    eventually("the delegation is reclaimed", || files.file_grant(&file).is_some());
    assert_eq!(files.file_grant(&file), granted);
}

#[test]
fn lost_data_takes_the_place_of_no_later_data() {
    let mut trial = Trial::new();
    trial.write(0, b"aaaaaaaa");
    trial.lose();
    trial.write(2, b"bbb");
    trial.mounted.fs.commit(&trial.file()).unwrap();
    assert_eq!(trial.on_disk(), b"aabbbaaa");
}

#[test]
fn data_that_was_cut_off_is_not_written_again() {
    let mut trial = Trial::new();
    trial.write(0, b"data that is cut off");
    let (file, size) = (trial.file(), SetAttr { size: Some(4), ..SetAttr::default() });
    trial.mounted.fs.setattr(&trial.cred, &file, &size, None).unwrap();
    trial.lose();
    trial.mounted.fs.commit(&file).unwrap();
    assert_eq!(trial.on_disk(), b"data");
}

#[test]
fn a_copy_that_is_lost_is_an_error_of_the_commit() {
    let mut trial = Trial::new();
    file(&*trial.disk, "source", b"something");
    let fs = &trial.mounted.fs;
    let source = fs.lookup(&trial.cred, &fs.root(), name("source")).unwrap().node.handle;
    let target = trial.file();
    assert_eq!(fs.copy(&trial.cred, (&source, 0), (&target, 0), 9).unwrap().value, 9);
    trial.lose();
    let found = trial.mounted.fs.commit(&target);
    assert_eq!(found.unwrap_err(), Status::Io);
    assert!(trial.mounted.fs.commit(&target).is_ok());
}

#[test]
fn much_more_data_can_be_written_than_is_kept() {
    let mut trial = Trial::new();
    let piece = vec![7; 1 << 20];
    for at in 0..80 {
        trial.write(at << 20, &piece);
    }
    trial.lose();
    trial.mounted.fs.commit(&trial.file()).unwrap();
    // The client no longer has the data that it committed to make room, and this server loses them
    // although it promised not to.
    let found = trial.disk.lookup(&root(), &trial.disk.root(), name("f")).unwrap().node.attr;
    assert_eq!(found.size, 80 << 20);
    assert!(found.used >= 16 << 20 && found.used <= 40 << 20, "{}", found.used);
}
