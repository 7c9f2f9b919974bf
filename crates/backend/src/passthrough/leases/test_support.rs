//! Support for tests: a file that can be held, and programs that use it.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use comity_vfs::{
    AsServer, Cred, Disk, FileHold, Fs, Gid, Handle, LocalLocks, LocalUse, Name, ReadInto, Result,
    Uid,
};

use crate::passthrough::{Descriptors, Passthrough, PassthroughOptions};
use crate::{LeaseWatch, sys};

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
pub(crate) const MOMENT: Duration = Duration::from_millis(50);

/// A file system with one file, and a thread that is notified of programs that want it.
pub(crate) struct WatchedFile {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) fs: Passthrough,
    pub(crate) file: Handle,
    told: Receiver<()>,
    seen: Sender<()>,
    _end: UnixStream,
}

impl WatchedFile {
    pub(crate) fn new() -> Self {
        Self::with(1000)
    }

    pub(crate) fn with(descriptors: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "some bytes").unwrap();
        let watch = Arc::<LeaseWatch>::default();
        let (end, ended) = UnixStream::pair().unwrap();
        let ((say, told), (seen, is_seen)) = (channel(), channel());
        let listening = Arc::clone(&watch);
        std::thread::spawn(move || {
            let listener = listening.listen(&AsServer::here().unwrap()).unwrap();
            say.send(()).unwrap();
            while listener.wait(ended.as_fd()).unwrap() {
                let _ = say.send(()).map(|()| is_seen.recv());
            }
        });
        told.recv().unwrap();
        let descriptors = Some(Descriptors::at_most(descriptors));
        let leases = Some(watch);
        let options = PassthroughOptions { descriptors, leases, ..PassthroughOptions::default() };
        let fs = Passthrough::open(folder.path(), options).unwrap();
        let name = Name::new(b"file").unwrap();
        let file = fs.lookup(&cred(), &fs.root(), name).unwrap().node.handle;
        Self { folder, fs, file, told, seen, _end: end }
    }

    pub(crate) fn hold(&self, hold: FileHold) -> Result<bool> {
        LocalLocks::hold_file(&self.fs, &self.file, hold)
    }

    /// Opens the file as a program does, in a thread.
    pub(crate) fn opens(&self, how: &OpenOptions) -> Receiver<File> {
        let (path, how) = (self.folder.path().join("file"), how.clone());
        let (say, opened) = channel();
        std::thread::spawn(move || say.send(how.open(path).unwrap()));
        opened
    }

    /// Runs a program in the folder and waits until it has ended.
    pub(crate) fn program(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(program);
        let done = command.args(arguments).current_dir(self.folder.path()).status().unwrap();
        assert!(done.success(), "{program} {arguments:?}");
    }

    /// Waits until a program wants a file; returns the file and the use. The thread is also
    /// notified of events that no program caused.
    pub(crate) fn wanted(&self) -> Option<(Handle, LocalUse)> {
        self.told_within(PATIENCE)
    }

    /// Returns whether no program wants the file for a moment.
    pub(crate) fn is_quiet(&self) -> bool {
        self.told_within(MOMENT * 2).is_none()
    }

    fn told_within(&self, patience: Duration) -> Option<(Handle, LocalUse)> {
        while self.told.recv_timeout(patience).is_ok() {
            let wanted = LocalLocks::poll_wanted(&self.fs);
            self.seen.send(()).unwrap();
            if wanted.is_some() {
                return wanted;
            }
        }
        None
    }

    /// Handles notifications until `is_heard` is true.
    pub(crate) fn hears(&self, is_heard: impl Fn() -> bool) {
        let mut heard = is_heard();
        while !heard {
            self.told.recv_timeout(PATIENCE).unwrap();
            heard = is_heard();
            self.seen.send(()).unwrap();
        }
    }

    pub(crate) fn read(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut into = ReadInto::new(&mut bytes);
        self.fs.read(&cred(), &self.file, 0, 100, &mut into).unwrap();
        bytes
    }

    /// Returns whether any program has the file open for writing.
    pub(crate) fn is_written(&self) -> bool {
        let program = File::open(self.folder.path().join("file")).unwrap();
        sys::set_lease(program.as_fd(), libc::F_RDLCK).is_err()
    }
}

impl Drop for WatchedFile {
    fn drop(&mut self) {
        self.fs.release_identity().unwrap();
    }
}

pub(crate) fn cred() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

pub(crate) fn reading() -> OpenOptions {
    OpenOptions::new().read(true).clone()
}

pub(crate) fn writing() -> OpenOptions {
    OpenOptions::new().write(true).clone()
}

pub(crate) fn emptying() -> OpenOptions {
    OpenOptions::new().write(true).truncate(true).clone()
}
