//! The working directory of a thread that looks up many entries of one directory.
//!
//! A call with a descriptor of a directory counts a reference up and down, because other threads
//! might close it meanwhile; a call relative to the working directory does not.

use std::cell::OnceCell;
use std::os::fd::BorrowedFd;

use rustix::fs::CWD;
use rustix::process::{chdir, fchdir};

use crate::sys;

thread_local! {
    /// True if this thread has a working directory of its own.
    static OWN_CWD: OnceCell<bool> = const { OnceCell::new() };
}

/// A directory that is the thread's working directory, if that is allowed, until this is dropped.
/// Then the thread changes to the root directory, because a file system with a working directory in
/// it cannot be unmounted.
pub(crate) struct ThreadCwd<'a> {
    dir: BorrowedFd<'a>,
    entered: bool,
}

impl<'a> ThreadCwd<'a> {
    /// Enters the directory, with the rights that the thread has at present.
    pub(crate) fn enter(dir: BorrowedFd<'a>) -> Self {
        let own_cwd = OWN_CWD.with(|own_cwd| *own_cwd.get_or_init(|| sys::unshare_cwd().is_ok()));
        Self { dir, entered: own_cwd && fchdir(dir).is_ok() }
    }

    /// Returns the directory to look names up in.
    pub(crate) fn place(&self) -> BorrowedFd<'a> {
        if self.entered { CWD } else { self.dir }
    }
}

impl Drop for ThreadCwd<'_> {
    fn drop(&mut self) {
        if self.entered {
            // If this is denied, the thread stays until its next chdir.
            let _ = chdir(c"/");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::fd::AsFd;

    use rustix::fs::{AtFlags, statat};

    use super::*;

    #[test]
    fn only_the_thread_that_enters_a_directory_stands_in_it_and_none_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("entry"), b"").unwrap();
        let dir = fs::File::open(folder.path()).unwrap();
        let stands = || fs::read_link("/proc/thread-self/cwd").unwrap();
        let before = stands();
        let entered = || {
            let within = ThreadCwd::enter(dir.as_fd());
            let known = statat(within.place(), c"entry", AtFlags::empty());
            (within.entered, known.is_ok(), stands())
        };
        let (here, after) =
            std::thread::scope(|scope| scope.spawn(|| (entered(), stands())).join().unwrap());
        assert_eq!(here, (true, true, folder.path().canonicalize().unwrap()));
        assert_eq!((after.to_str(), stands()), (Some("/"), before));
    }

    #[test]
    fn a_directory_that_cannot_be_entered_is_asked_by_its_descriptor() {
        let file = tempfile::tempfile().unwrap();
        let within = ThreadCwd::enter(file.as_fd());
        assert!(!within.entered);
        assert!(statat(within.place(), c"", AtFlags::EMPTY_PATH).is_ok());
    }
}
