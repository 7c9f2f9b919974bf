//! Directories that are held for clients. Programs change a directory without opening it, so a
//! lease would not notice. Each held directory is marked: the kernel reports changes after they
//! were made (`fanotify`). From Linux 6.19 on a program can also be made to wait (`F_SETDELEG`).
//! The mark then shows changes that slip through while the server itself changes the directory.

use std::fs::File;
use std::sync::Arc;

use comity_vfs::{DirectoryHold, FileHold, Handle, Result, Status};
use rustix::fs::OFlags;
use rustix::io::Errno;

use super::fanotify_marks::{Marked, ServersMark};
use super::lease::Lease;
use crate::fanotify_groups;
use crate::passthrough::Passthrough;
use crate::passthrough::handles::kernel_delegation::{KernelDelegation, try_delegation};

const NO_WATCH: &str = "changes of directories by programs are not watched here: leave \
    --no-local-locks out, and give the server CAP_LEASE; or write sole-writer if only this server \
    changes the directories";

impl Passthrough {
    /// Holds a directory; there is only one call for a directory at a time.
    pub(crate) fn begin_directory(
        &self,
        handle: &Handle,
        hold: DirectoryHold,
        thread: i32,
    ) -> Result<bool> {
        let node = self.directory(handle)?;
        let Some(watch) = self.leases.watch.as_ref() else { return Ok(false) };
        let Some(changes) = watch.changes() else { return Ok(false) };
        let opened = self.open_data(&node, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let file = Arc::new(File::from(opened));
        let Some(mark) = ServersMark::set(self.leases.identity, changes, &file) else {
            return Ok(false);
        };
        if hold == DirectoryHold::Wait {
            let (directory, watch) = (Arc::clone(&file), Arc::clone(watch));
            let identity = self.leases.identity;
            if node.delegate(KernelDelegation { directory, thread, watch, identity }).is_err() {
                return Ok(false);
            }
        }
        let (hold, marked) = (FileHold::Directory(hold), Marked::Yes(mark));
        Ok(self.add_directory(handle, Lease { node, file, hold, marked, told: false }))
    }

    /// Adds a held directory; returns `false` and releases it if a program waits for it already:
    /// the kernel's signal was ignored if it came before the directory was known.
    fn add_directory(&self, handle: &Handle, lease: Lease) -> bool {
        let hold = lease.hold;
        self.leases.add(handle, lease);
        let stands = self.leases.stands(handle, hold) == Some(true);
        if !stands && let Some(lease) = self.leases.remove(handle) {
            lease.end();
        }
        stands
    }

    /// See [`comity_vfs::LocalLocks::may_hold_directories`].
    pub(crate) fn may_hold_directories(
        &self,
        hold: DirectoryHold,
    ) -> std::result::Result<(), String> {
        if self.leases.watch.is_none() {
            return Err(NO_WATCH.to_owned());
        }
        let top = self.try_top().map_err(|status| format!("the directory: {status:?}"))?;
        match fanotify_groups::try_mark(&top) {
            // The kernel can do it, but not now: the export may have worked until this reload.
            Err(errno @ (Errno::MFILE | Errno::NFILE | Errno::NOSPC)) => tell_exhausted(errno),
            tried => tried.map_err(unmarked)?,
        }
        if hold == DirectoryHold::Late {
            return Ok(());
        }
        match try_delegation(&top) {
            // The file system grants delegations, but not while a program uses the directory.
            Ok(()) | Err(Errno::AGAIN) => Ok(()),
            Err(errno) => Err(undelegated(errno)),
        }
    }

    fn try_top(&self) -> std::result::Result<File, Status> {
        let top = self.directory(&self.root)?;
        self.open_data(&top, OFlags::RDONLY | OFlags::DIRECTORY).map(File::from)
    }
}

fn tell_exhausted(error: Errno) {
    tracing::warn!(%error, "it cannot be checked whether the kernel reports changes of directories \
        by programs, because too many files are open or watched: see max_user_groups and \
        max_user_marks in /proc/sys/fs/fanotify");
}

fn unmarked(errno: Errno) -> String {
    format!(
        "the kernel does not report changes of these directories by programs ({errno}): it takes \
         Linux 5.13, or 5.1 with CAP_SYS_ADMIN, and a file system that names files by handles; or \
         write sole-writer if only this server changes the directories"
    )
}

fn undelegated(errno: Errno) -> String {
    format!(
        "the kernel does not make programs wait that change these directories ({errno}): it takes \
         Linux 6.19, a file system with leases, and CAP_LEASE; or write local-late, and clients \
         are told after a change"
    )
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::time::{Duration, Instant};

    use comity_vfs::{FileType, Fs, LocalLocks, LocalUse, Mode, Name, SetAttr};

    use super::super::test_support::{MOMENT, WatchedFile, cred};
    use super::*;
    use crate::passthrough::PassthroughOptions;
    use crate::sys;

    const LATE: FileHold = FileHold::Directory(DirectoryHold::Late);

    /// A file system whose root is held.
    fn held() -> WatchedFile {
        let site = WatchedFile::new();
        assert_eq!(LocalLocks::hold_file(&site.fs, &site.fs.root(), LATE), Ok(true));
        site
    }

    fn changed(site: &WatchedFile) -> Option<(Handle, LocalUse)> {
        Some((site.fs.root(), LocalUse::Change))
    }

    /// Changes that programs make to a directory.
    const CHANGES: [(&str, &[&str]); 8] = [
        ("touch", &["new"]),
        ("mkdir", &["new"]),
        ("ln", &["-s", "target", "new"]),
        ("ln", &["file", "new"]),
        ("mv", &["file", "new"]),
        ("rm", &["file"]),
        ("chmod", &["711", "."]),
        ("touch", &["--date=2001-02-03", "."]),
    ];

    #[test]
    fn each_change_of_a_held_directory_by_a_program_is_reported() {
        for (program, arguments) in CHANGES {
            let site = held();
            site.program(program, arguments);
            assert_eq!(site.wanted(), changed(&site), "{program} {arguments:?}");
        }
    }

    #[test]
    fn a_directory_that_is_renamed_into_another_one_is_reported_for_both() {
        let site = WatchedFile::new();
        std::fs::create_dir(site.folder.path().join("dir")).unwrap();
        let name = Name::new(b"dir").unwrap();
        let dir = site.fs.lookup(&cred(), &site.fs.root(), name).unwrap().node.handle;
        for directory in [site.fs.root(), dir] {
            assert_eq!(LocalLocks::hold_file(&site.fs, &directory, LATE), Ok(true));
        }
        site.program("mv", &["file", "dir"]);
        // The kernel reports both at once, or one after the other.
        let first = site.wanted().unwrap();
        let second = site.fs.poll_wanted().or_else(|| site.wanted()).unwrap();
        let mut told = [first, second];
        told.sort_by_key(|(handle, _)| *handle != dir);
        assert_eq!(told, [(dir, LocalUse::Change), changed(&site).unwrap()]);
    }

    #[test]
    fn reads_and_changes_of_the_files_in_a_held_directory_are_not_reported() {
        let site = held();
        site.program("ls", &["-l"]);
        site.program("sh", &["-c", "echo more >> file; chmod 600 file; cat file; test ! -e none"]);
        assert!(site.is_quiet());
    }

    #[test]
    fn changes_of_a_held_directory_by_the_server_itself_are_not_reported() {
        let site = held();
        let (cred, root) = (cred(), site.fs.root());
        let [one, two] = [b"one", b"two"].map(|name| Name::new(name).unwrap());
        let mode = SetAttr { mode: Some(Mode::new(0o711)), ..SetAttr::default() };
        site.fs.mkdir(&cred, &root, one, &SetAttr::default()).unwrap();
        site.fs.rename(&cred, (&root, one), (&root, two)).unwrap();
        site.fs.rmdir(&cred, &root, two).unwrap();
        site.fs.setattr(&cred, &root, &mode, None).unwrap();
        assert!(site.is_quiet());
        site.program("touch", &["three"]);
        assert_eq!(site.wanted(), changed(&site));
    }

    #[test]
    fn changes_of_a_directory_that_is_held_no_more_are_not_reported() {
        let site = held();
        assert_eq!(LocalLocks::hold_file(&site.fs, &site.fs.root(), FileHold::Free), Ok(true));
        site.program("touch", &["new"]);
        assert!(site.is_quiet());
        assert_eq!(site.fs.leases.changes().unwrap().marks(), 0);
    }

    #[test]
    fn more_changes_than_the_kernel_queues_are_reported_for_every_directory() {
        let site = held();
        let watch = site.fs.leases.watch.as_ref().unwrap();
        watch.lose();
        assert_eq!(site.fs.poll_wanted(), changed(&site));
    }

    #[test]
    fn a_change_is_reported_within_a_tenth_of_a_second() {
        let site = held();
        let mut times: Vec<Duration> = (0..15)
            .map(|number| {
                let path = site.folder.path().join(format!("new-{number}"));
                let start = Instant::now();
                site.program("touch", &[path.to_str().unwrap()]);
                assert_eq!(site.wanted(), changed(&site));
                start.elapsed()
            })
            .collect();
        times.sort();
        println!("a program runs and its change is reported: {times:?}");
        assert!(times[7] < Duration::from_millis(100), "{times:?}");
    }

    /// A file system whose root is held against programs that wait, if the kernel can do that.
    fn waiting() -> Option<WatchedFile> {
        let site = WatchedFile::new();
        if let Err(why) = site.fs.may_hold_directories(DirectoryHold::Wait) {
            eprintln!("skipped: {why}");
            return None;
        }
        let hold = FileHold::Directory(DirectoryHold::Wait);
        assert_eq!(LocalLocks::hold_file(&site.fs, &site.fs.root(), hold), Ok(true));
        Some(site)
    }

    #[test]
    fn a_program_that_changes_a_directory_waits_until_it_is_released() {
        for (program, arguments) in CHANGES {
            let Some(site) = waiting() else { return };
            let mut command = std::process::Command::new(program);
            let mut child =
                command.args(arguments).current_dir(site.folder.path()).spawn().unwrap();
            let wanted = Some((site.fs.root(), LocalUse::Open));
            assert_eq!(site.wanted(), wanted, "{program} {arguments:?}");
            std::thread::sleep(MOMENT);
            assert_eq!(child.try_wait().unwrap(), None, "{program} {arguments:?} waits");
            let free = LocalLocks::hold_file(&site.fs, &site.fs.root(), FileHold::Free);
            assert_eq!(free, Ok(true));
            assert!(child.wait().unwrap().success(), "{program} {arguments:?}");
        }
    }

    #[test]
    fn the_server_itself_changes_a_directory_for_which_programs_wait_and_holds_it_afterwards() {
        let Some(site) = waiting() else { return };
        let (cred, root) = (cred(), site.fs.root());
        let [one, two] = [b"one", b"two"].map(|name| Name::new(name).unwrap());
        let start = Instant::now();
        for _ in 0..100 {
            site.fs.mkdir(&cred, &root, one, &SetAttr::default()).unwrap();
            site.fs.rename(&cred, (&root, one), (&root, two)).unwrap();
            site.fs.rmdir(&cred, &root, two).unwrap();
        }
        assert!(start.elapsed() < Duration::from_secs(5), "no change waits");
        assert!(site.is_quiet());
        let mut program = std::process::Command::new("touch");
        let mut program = program.arg("new").current_dir(site.folder.path()).spawn().unwrap();
        assert_eq!(site.wanted(), Some((root, LocalUse::Open)));
        assert_eq!(LocalLocks::hold_file(&site.fs, &root, FileHold::Free), Ok(true));
        assert!(program.wait().unwrap().success());
    }

    #[test]
    fn a_directory_for_which_a_program_waited_before_it_was_known_is_not_held() {
        let site = WatchedFile::new();
        let root = site.fs.root();
        let lease = Lease {
            node: site.fs.directory(&root).unwrap(),
            file: Arc::new(File::open(site.folder.path()).unwrap()),
            hold: FileHold::Directory(DirectoryHold::Wait),
            marked: Marked::No,
            told: false,
        };
        assert!(!lease.node.is_delegated());
        assert!(!site.fs.add_directory(&root, lease));
        assert!(site.fs.leases.held().files.is_empty());
    }

    #[test]
    fn a_file_is_not_held_like_a_directory() {
        let site = WatchedFile::new();
        assert_eq!(site.hold(LATE), Err(Status::NotDir));
        assert_eq!(site.fs.getattr(&site.fs.root()).unwrap().file_type, FileType::Directory);
    }

    #[test]
    fn a_directory_cannot_be_held_without_a_watch_or_support_of_the_kernel() {
        let site = WatchedFile::new();
        assert_eq!(site.fs.may_hold_directories(DirectoryHold::Late), Ok(()));
        let top = File::open(site.folder.path()).unwrap();
        let is_delegated = sys::set_delegation(top.as_fd(), libc::F_RDLCK).is_ok();
        let waiting = site.fs.may_hold_directories(DirectoryHold::Wait);
        assert_eq!(waiting.is_ok(), is_delegated, "{waiting:?}");
        assert!(waiting.err().is_none_or(|why| why.contains("Linux 6.19")));
        let fs = Passthrough::open(site.folder.path(), PassthroughOptions::default()).unwrap();
        let why = fs.may_hold_directories(DirectoryHold::Late).unwrap_err();
        assert!(why.contains("--no-local-locks"), "{why}");
    }
}
