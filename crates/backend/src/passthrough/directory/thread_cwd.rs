//! A directory in which a thread stands while it asks for many of its entries.
//!
//! A call that names a directory by its descriptor counts that descriptor's use up and down, since
//! other threads might close it meanwhile; one that names nothing starts where the thread stands.

use std::cell::OnceCell;
use std::os::fd::BorrowedFd;

use rustix::fs::CWD;
use rustix::process::{chdir, fchdir};

use crate::sys;

thread_local! {
    /// Whether this thread stands where it likes, whatever the others do.
    static APART: OnceCell<bool> = const { OnceCell::new() };
}

/// A directory that the thread stands in, if it may, until this is dropped. Afterwards it stands in
/// the root directory: what it stood in could not be unmounted.
pub(crate) struct ThreadCwd<'a> {
    dir: BorrowedFd<'a>,
    entered: bool,
}

impl<'a> ThreadCwd<'a> {
    /// Goes there, with the rights that the thread has at present.
    pub(crate) fn enter(dir: BorrowedFd<'a>) -> Self {
        let apart = APART.with(|apart| *apart.get_or_init(|| sys::stand_apart().is_ok()));
        Self { dir, entered: apart && fchdir(dir).is_ok() }
    }

    /// What names are looked up in.
    pub(crate) fn place(&self) -> BorrowedFd<'a> {
        if self.entered { CWD } else { self.dir }
    }
}

impl Drop for ThreadCwd<'_> {
    fn drop(&mut self) {
        if self.entered {
            // Who may not be there stays where it is until it goes elsewhere.
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
    fn what_cannot_be_entered_is_asked_by_its_descriptor() {
        let file = tempfile::tempfile().unwrap();
        let within = ThreadCwd::enter(file.as_fd());
        assert!(!within.entered);
        assert!(statat(within.place(), c"", AtFlags::EMPTY_PATH).is_ok());
    }
}
