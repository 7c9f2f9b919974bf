//! Marks on held files: the kernel reports changes by programs that do not open the files.
//!
//! An OPEN with a delegation must not wait for the mark, and many delegations are returned soon. So
//! the lease thread marks files later, and compares the ctime to notice changes made until then. A
//! file that the server itself is about to change is marked first, and one that was changed a
//! moment ago is marked at once.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_vfs::{Handle, LocalUse, Time};
use rustix::fs::fstat;

use super::lease::{Lease, LeasedFiles, Leases};
use crate::fanotify_watch::{ChangeWatch, Mark};
use crate::lease_watch::Changed;
use crate::passthrough::Passthrough;
use crate::passthrough::access::access_cache::is_past;
use crate::passthrough::access::thread_credentials::Identity;
use crate::passthrough::attributes::attr::ctime;
use crate::passthrough::handles::node::{Node, Writing};

/// The state of the mark of a file that is held.
#[derive(Debug)]
pub(crate) enum Marked {
    /// The file is marked: the kernel reports its changes.
    Yes(#[expect(dead_code, reason = "its drop takes the mark off")] ServersMark),
    /// The file is still to be marked. If its ctime differs by then, it was changed meanwhile.
    Soon(Time),
    /// The kernel reports no changes.
    No,
}

/// A mark that is set and removed under the server's own identity, whichever caller the thread
/// acted for last, because the kernel requires the right to read the file.
#[derive(Debug)]
pub(crate) struct ServersMark {
    identity: Identity,
    _mark: Mark,
}

impl ServersMark {
    pub(crate) fn set(
        identity: Identity,
        watch: &Arc<ChangeWatch>,
        file: &Arc<File>,
    ) -> Option<Self> {
        // If the server's identity cannot be taken, setting the mark fails, which is logged.
        let _ = identity.server();
        Mark::set(watch, file).map(|mark| Self { identity, _mark: mark })
    }
}

impl Drop for ServersMark {
    fn drop(&mut self) {
        // The mark is removed after this, when its field is dropped.
        let _ = self.identity.server();
    }
}

impl Leases {
    /// Marks a newly held file, or notes that it is to be marked.
    pub(crate) fn begin_mark(&self, node: &Node, file: &Arc<File>) -> Marked {
        let Some(watch) = self.changes() else { return Marked::No };
        match fstat(file).map(|stat| ctime(&stat)) {
            // A change now may get the same ctime, so that the comparison would miss it.
            Ok(time) if !is_past(time) => {
                ServersMark::set(self.identity, watch, file).map_or(Marked::No, Marked::Yes)
            }
            Ok(time) => {
                node.unmarked.store(true, Ordering::Relaxed);
                Marked::Soon(time)
            }
            Err(_) => Marked::No,
        }
    }

    /// Queues a file to be marked, if marks are in use.
    pub(crate) fn mark_soon(&self, held: &mut LeasedFiles, handle: &Handle) {
        let Some(watch) = self.changes() else { return };
        let is_first = held.unmarked.is_empty();
        if held.is_unmarked(handle) && held.unmarked.insert(*handle) && is_first {
            watch.ring();
        }
    }

    /// Marks all queued files.
    pub(crate) fn mark_all(&self) {
        let Some(watch) = self.changes() else { return };
        let unmarked = std::mem::take(&mut self.held().unmarked);
        for handle in unmarked {
            // The lock is released between two files, so that others can take it.
            self.mark(watch, &handle);
        }
    }

    /// Marks a file, if it is queued; returns whether it was changed since it was held.
    fn mark(&self, watch: &Arc<ChangeWatch>, handle: &Handle) -> bool {
        let set = |file: &_| ServersMark::set(self.identity, watch, file);
        self.held().mark(handle, set)
    }

    pub(crate) fn changes(&self) -> Option<&Arc<ChangeWatch>> {
        self.watch.as_ref()?.changes()
    }
}

impl LeasedFiles {
    fn mark(
        &mut self,
        handle: &Handle,
        set: impl FnOnce(&Arc<File>) -> Option<ServersMark>,
    ) -> bool {
        self.unmarked.remove(handle);
        let Some(lease) = self.files.get_mut(handle) else { return false };
        let Marked::Soon(time) = lease.marked else { return false };
        lease.marked = set(&lease.file).map_or(Marked::No, Marked::Yes);
        lease.node.unmarked.store(false, Ordering::Relaxed);
        let changed = fstat(&*lease.file).is_ok_and(|stat| ctime(&stat) != time);
        if changed {
            self.wanted.push((*handle, LocalUse::Change));
        }
        changed
    }

    fn is_unmarked(&self, handle: &Handle) -> bool {
        let marked = self.files.get(handle).map(|lease| &lease.marked);
        matches!(marked, Some(Marked::Soon(_)))
    }
}

impl Passthrough {
    /// Notes the beginning of a change of data or attributes by this server
    /// ([`Node::begin_write`]), so that it is not taken for one by a program.
    pub(crate) fn begin_write<'a>(&self, node: &'a Node) -> Writing<'a> {
        if node.unmarked.load(Ordering::Relaxed)
            && let Some(watch) = self.leases.changes()
            && self.leases.mark(watch, &node.handle)
        {
            watch.ring();
        }
        node.begin_write()
    }

    /// Reads the changes by programs.
    pub(crate) fn hear_changes(&self, held: &mut LeasedFiles) {
        let Some(watch) = &self.leases.watch else { return };
        let changed: Vec<Handle> = match watch.changed(&mut held.turn) {
            Changed::These(files) => {
                let volumes = if files.is_empty() { Vec::new() } else { self.mounts.all() };
                let handles = |file| volumes.iter().filter_map(move |it| it.handle(file));
                files.iter().flat_map(handles).collect()
            }
            Changed::All => held.files.keys().copied().collect(),
        };
        let marked = changed.into_iter().filter(|file| held.files.get(file).is_some_and(is_marked));
        let marked: Vec<_> = marked.map(|file| (file, LocalUse::Change)).collect();
        held.wanted.extend(marked);
    }
}

const fn is_marked(lease: &Lease) -> bool {
    matches!(lease.marked, Marked::Yes(_))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::process::Command;
    use std::time::Instant;

    use comity_vfs::{Cred, Disk, FileHold, Fs, Gid, LocalLocks, Mode, Name, SetAttr, Uid};

    use super::super::test_support::{WatchedFile, cred};
    use super::*;
    use crate::lease_watch::CHANGES_REST;
    use crate::passthrough::PassthroughOptions;
    use crate::passthrough::limits::TIME_GRAIN;

    /// Changes that programs make to a file without opening it.
    const CHANGES: [(&str, &[&str]); 6] = [
        ("mv", &["file", "other"]),
        ("rm", &["file"]),
        ("ln", &["file", "other"]),
        ("chmod", &["600", "file"]),
        ("chown", &["1", "file"]),
        ("mv", &["second", "file"]),
    ];

    /// A held file that was changed some time ago.
    fn settled(hold: FileHold) -> WatchedFile {
        let site = WatchedFile::new();
        std::thread::sleep(TIME_GRAIN * 2);
        assert_eq!(site.hold(hold), Ok(true));
        site
    }

    fn changed(site: &WatchedFile) -> Option<(Handle, LocalUse)> {
        Some((site.file, LocalUse::Change))
    }

    fn each_change(hold: FileHold, mut tried: impl FnMut(&WatchedFile, &str, &[&str])) {
        for (program, arguments) in CHANGES {
            if program == "chown" && !rustix::process::geteuid().is_root() {
                eprintln!("skipped: only root gives files away");
                continue;
            }
            let site = settled(hold);
            std::fs::write(site.folder.path().join("second"), "").unwrap();
            tried(&site, program, arguments);
        }
    }

    /// The number of marks in the kernel.
    fn marks(site: &WatchedFile) -> usize {
        site.fs.leases.changes().unwrap().marks()
    }

    #[test]
    fn a_change_of_a_leased_file_is_reported() {
        for hold in [FileHold::Shared, FileHold::Exclusive] {
            each_change(hold, |site, program, arguments| {
                site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(site) == 1);
                site.program(program, arguments);
                assert_eq!(site.wanted(), changed(site), "{program} {arguments:?}");
                assert_eq!(LocalLocks::poll_wanted(&site.fs), None, "it was reported already");
                assert_eq!(site.hold(FileHold::Free), Ok(true));
            });
        }
    }

    /// Makes a second file and holds it.
    fn hold_second(site: &WatchedFile) -> Handle {
        std::fs::write(site.folder.path().join("second"), "").unwrap();
        let name = Name::new(b"second").unwrap();
        let second = site.fs.lookup(&cred(), &site.fs.root(), name).unwrap().node.handle;
        assert_eq!(LocalLocks::hold_file(&site.fs, &second, FileHold::Shared), Ok(true));
        second
    }

    /// Starts a program that changes one file many times and then another one.
    fn storm(site: &WatchedFile) -> std::process::Child {
        let files = std::iter::repeat_n("file", 50_000).chain(["second"]);
        let mut command = Command::new("chmod");
        command.arg("600").args(files).current_dir(site.folder.path()).spawn().unwrap()
    }

    #[test]
    fn repeated_changes_of_a_file_are_reported_now_and_then() {
        let site = settled(FileHold::Shared);
        let second = hold_second(&site);
        site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(&site) == 2);
        let (start, times, heard) = (Instant::now(), Cell::new(0), RefCell::new(Vec::new()));
        let mut program = storm(&site);
        site.hears(|| {
            times.update(|times| times + 1);
            heard.borrow_mut().extend(std::iter::from_fn(|| LocalLocks::poll_wanted(&site.fs)));
            heard.borrow().contains(&(second, LocalUse::Change))
        });
        // Three more: the listener reads changes once before the first signal, and is woken when a
        // file is to be marked.
        let most = start.elapsed().as_millis() / CHANGES_REST.as_millis() + 3;
        assert!(times.get() <= most, "told {} times, not {most}", times.get());
        assert!(heard.borrow().contains(&(site.file, LocalUse::Change)));
        assert!(program.wait().unwrap().success());
    }

    #[test]
    fn a_leased_file_is_marked_soon() {
        let site = settled(FileHold::Shared);
        assert_eq!(marks(&site), 0);
        let told = Cell::new(false);
        // The changes are read before the notification.
        site.hears(|| told.replace(true));
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None);
        assert_eq!(marks(&site), 1);
    }

    #[test]
    fn a_change_before_the_mark_is_found() {
        each_change(FileHold::Shared, |site, program, arguments| {
            assert_eq!(marks(site), 0);
            site.program(program, arguments);
            assert_eq!(LocalLocks::poll_wanted(&site.fs), changed(site), "{program} {arguments:?}");
        });
    }

    #[test]
    fn a_file_that_was_just_changed_is_marked_at_once() {
        let site = WatchedFile::new();
        let path = site.folder.path().join("file");
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o640))
            .unwrap();
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(marks(&site), 1);
        site.program("chmod", &["600", "file"]);
        assert_eq!(site.wanted(), changed(&site));
    }

    fn change_all(site: &WatchedFile) {
        let (cred, file): (Cred<Disk>, _) = (cred(), &site.file);
        let mode = |mode| SetAttr { mode: Some(Mode::new(mode)), ..SetAttr::default() };
        site.fs.setattr(&cred, file, &mode(0o600), None).unwrap();
        let owner = SetAttr { uid: Some(Uid::new(1)), ..SetAttr::default() };
        if rustix::process::geteuid().is_root() {
            site.fs.setattr(&cred, file, &owner, None).unwrap();
        }
        site.fs.write(&cred, file, 0, b"more").unwrap();
        site.fs.commit(file).unwrap();
    }

    #[test]
    fn changes_by_the_server_itself_are_not_reported() {
        for marked_before in [false, true] {
            let site = settled(FileHold::Exclusive);
            if marked_before {
                site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(&site) == 1);
            }
            change_all(&site);
            assert_eq!(marks(&site), 1);
            assert!(site.is_quiet());
            site.program("chmod", &["640", "file"]);
            assert_eq!(site.wanted(), changed(&site));
        }
    }

    #[test]
    fn a_change_by_a_program_before_one_by_the_server_is_reported() {
        let site = settled(FileHold::Exclusive);
        site.program("chmod", &["640", "file"]);
        change_all(&site);
        assert_eq!(site.wanted(), changed(&site));
    }

    #[test]
    fn a_change_of_a_file_that_is_no_longer_leased_is_not_reported() {
        let site = settled(FileHold::Shared);
        site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(&site) == 1);
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        assert_eq!(marks(&site), 0);
        assert_eq!(site.hold(FileHold::Shared), Ok(true));
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        assert!(site.fs.leases.held().unmarked.is_empty());
        site.program("chmod", &["600", "file"]);
        assert!(site.is_quiet());
    }

    #[test]
    fn changes_are_reported_until_neither_of_two_file_systems_holds_the_file() {
        let site = settled(FileHold::Shared);
        let leases = site.fs.leases.watch.clone();
        let options = PassthroughOptions { leases, ..PassthroughOptions::default() };
        let other = Passthrough::open(site.folder.path(), options).unwrap();
        assert_eq!(LocalLocks::hold_file(&other, &site.file, FileHold::Shared), Ok(true));
        assert_eq!(
            (LocalLocks::poll_wanted(&site.fs), LocalLocks::poll_wanted(&other)),
            (None, None)
        );
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        assert_eq!(marks(&site), 1);
        site.program("chmod", &["600", "file"]);
        site.hears(|| LocalLocks::poll_wanted(&other) == changed(&site));
        assert_eq!(LocalLocks::hold_file(&other, &site.file, FileHold::Free), Ok(true));
        assert_eq!(marks(&site), 0);
    }

    #[test]
    fn where_changes_are_lost_all_that_is_marked_may_have_changed() {
        let site = settled(FileHold::Shared);
        let watch = site.fs.leases.watch.as_ref().unwrap();
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None);
        watch.lose();
        assert_eq!(LocalLocks::poll_wanted(&site.fs), changed(&site));
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None, "it was reported already");
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        watch.lose();
        assert_eq!(LocalLocks::poll_wanted(&site.fs), None);
    }

    /// A held file that only its owner may read, on a thread that has last acted for another user.
    fn spoken_for_another(hold: FileHold) -> Option<WatchedFile> {
        let site = WatchedFile::new();
        site.program("chmod", &["600", "file"]);
        std::thread::sleep(TIME_GRAIN * 2);
        assert_eq!(site.hold(hold), Ok(true));
        if site.fs.identity != Identity::PerCaller {
            eprintln!("skipped: nobody is spoken for by an ordinary user");
            return None;
        }
        site.fs.identity.caller(&Cred::new(Uid::new(1000), Gid::new(1000))).unwrap();
        Some(site)
    }

    #[test]
    fn files_are_marked_whichever_caller_was_served_last() {
        let Some(site) = spoken_for_another(FileHold::Exclusive) else { return };
        site.fs.write(&cred(), &site.file, 0, b"more").unwrap();
        assert_eq!(marks(&site), 1);
    }

    #[test]
    fn marks_are_taken_off_whichever_caller_was_served_last() {
        let Some(site) = spoken_for_another(FileHold::Shared) else { return };
        site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(&site) == 1);
        site.fs.identity.caller(&Cred::new(Uid::new(1000), Gid::new(1000))).unwrap();
        assert_eq!(site.hold(FileHold::Free), Ok(true));
        assert_eq!(marks(&site), 0);
    }

    #[test]
    fn no_marks_are_left_of_a_file_system_that_is_gone() {
        let Some(mut site) = spoken_for_another(FileHold::Exclusive) else { return };
        site.hears(|| LocalLocks::poll_wanted(&site.fs).is_none() && marks(&site) == 1);
        let watch = Arc::clone(site.fs.leases.changes().unwrap());
        let other = Passthrough::open(site.folder.path(), PassthroughOptions::default()).unwrap();
        site.fs.identity.caller(&Cred::new(Uid::new(1000), Gid::new(1000))).unwrap();
        site.fs = other;
        assert_eq!(watch.marks(), 0);
    }
}
