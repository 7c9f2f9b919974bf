//! The tests that every [`Fs`] must pass: small named cases that run over any of them, be it a
//! backend, a layer, a cache, or a client of a server.
//!
//! **Answers:** whether an [`Fs`] does what the protocols need of it ([`run`]).
//!
//! **May not know:** how an [`Fs`] does it, protocols, exports.
//!
//! Every case works in an empty directory of its own and changes nothing else, so that the cases
//! can run over a file system that is in use.

mod acl;
mod attributes;
mod change;
mod clone;
mod concurrency;
mod create;
mod data;
mod failure;
mod fixture;
mod handle;
mod link;
mod listing;
mod names;
mod permission;
mod remove;
mod rename;
mod set_id;
mod space;
mod special;
mod symlink;
mod xattr;

use std::fmt;

use comity_vfs::{Cred, Disk, Fs};

pub use failure::{Check, Failure};
pub use fixture::Fixture;

/// A requirement for every [`Fs`], with its test.
#[derive(Clone, Copy)]
pub struct Case {
    /// The topic, a slash, and the requirement.
    pub name: &'static str,
    /// The features that the file system needs for the case.
    pub needs: Needs,
    /// Runs the test.
    pub run: fn(&Fixture<'_>) -> Check,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The features that a file system needs for a case, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs(u32);

impl Needs {
    /// No optional feature.
    pub const NONE: Self = Self(0);
    /// The file system distinguishes callers by their ids; the owner of the tree is root.
    pub const IDENTITIES: Self = Self(1);
    /// POSIX ACLs.
    pub const ACLS: Self = Self(1 << 1);
    /// Extended attributes.
    pub const XATTRS: Self = Self(1 << 2);
    /// Data and holes are distinguished, in a grain of at most 64 KiB.
    pub const SEEK: Self = Self(1 << 3);
    /// Space can be allocated before it is written.
    pub const ALLOCATE: Self = Self(1 << 4);
    /// Holes can be punched into files.
    pub const DEALLOCATE: Self = Self(1 << 5);
    /// Copies within the file system.
    pub const COPY: Self = Self(1 << 6);
    /// Devices can be made by the owner of the tree, who is root.
    pub const DEVICES: Self = Self(1 << 7);
    /// Reading a symbolic link does not change its access time.
    pub const STILL_LINKS: Self = Self(1 << 8);
    /// Blocks can be shared between files, in a grain of at most 64 KiB.
    pub const CLONE: Self = Self(1 << 9);
    /// Times before 1970 and after 2106.
    pub const EARLY_TIMES: Self = Self(1 << 10);
    /// All features.
    pub const ALL: Self = Self((1 << 11) - 1);

    /// Returns whether all of `other` is in this set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set and `other`.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// All cases, topic by topic.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    [
        create::CASES,
        names::CASES,
        remove::CASES,
        rename::CASES,
        link::CASES,
        symlink::CASES,
        special::CASES,
        listing::CASES,
        attributes::CASES,
        data::CASES,
        change::CASES,
        handle::CASES,
        permission::CASES,
        set_id::CASES,
        acl::CASES,
        xattr::CASES,
        space::CASES,
        clone::CASES,
        concurrency::CASES,
    ]
    .into_iter()
    .flatten()
}

/// The outcome of the cases.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of cases that passed.
    pub passed: usize,
    /// The cases whose needs were not met.
    pub skipped: Vec<&'static str>,
    /// The cases that failed, with the reasons.
    pub failed: Vec<(&'static str, Failure)>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { passed, skipped, failed } = self;
        writeln!(f, "{passed} passed, {} failed, {} skipped", failed.len(), skipped.len())?;
        skipped.iter().try_for_each(|name| writeln!(f, "skipped: {name}"))?;
        failed.iter().try_for_each(|(name, reason)| writeln!(f, "FAILED: {name}: {reason}"))
    }
}

/// Runs over `fs` every case whose requirements are in `has`, one after the other, in directories
/// that `owner` makes in the top directory.
pub fn run(fs: &dyn Fs, owner: &Cred<Disk>, has: Needs) -> Report {
    let mut report = Report::default();
    for case in cases() {
        if !has.contains(case.needs) {
            report.skipped.push(case.name);
            continue;
        }
        match Fixture::new(fs, owner.clone(), case.name).and_then(|f| (case.run)(&f)) {
            Ok(()) => report.passed += 1,
            Err(failure) => report.failed.push((case.name, failure)),
        }
    }
    report
}

/// The cases of one topic: what they need, and their functions.
macro_rules! topic {
    ($topic:literal $($needs:expr => $($run:ident),+ ;)+) => {
        pub(super) const CASES: &[super::Case] = &[$($(super::Case {
            name: concat!($topic, "/", stringify!($run)),
            needs: $needs,
            run: $run,
        }),+),+];
    };
}
use topic;
