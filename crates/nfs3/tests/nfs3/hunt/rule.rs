//! The rule of docs/semantics.md, implemented a second time from its text and not from the code.

use std::fmt;

use comity_vfs::{Attr, Cred, Disk};

use super::rng::Rng;
use super::twins::{GIDS, UIDS};

/// Cloak entries in their order.
#[derive(Debug, Clone)]
pub(crate) struct Rule(Vec<Entry>);

#[derive(Debug, Clone)]
struct Entry {
    by_user: bool,
    first: u32,
    last: u32,
    any: bool,
    mask: u32,
}

impl Rule {
    /// A rule that hides nothing.
    pub(crate) const fn none() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn random(rng: &mut Rng) -> Self {
        let entry = |rng: &mut Rng| {
            let by_user = rng.one_in(2);
            let first = rng.below(5) as u32 + if by_user { UIDS } else { GIDS };
            let mask = *rng.pick(&[0, 0, 0o070, 0o004, 0o007, 0o044, 0o011, 0o060]);
            Entry { by_user, first, last: first + rng.below(4) as u32, any: rng.one_in(2), mask }
        };
        Self((0..1 + rng.below(3)).map(|_| entry(rng)).collect())
    }

    pub(crate) fn shows(&self, caller: &Cred<Disk>, file: &Attr<Disk>) -> bool {
        let covers = |entry: &&Entry| {
            let id = if entry.by_user { file.uid.number() } else { file.gid.number() };
            (entry.first..=entry.last).contains(&id)
        };
        let Some(entry) = self.0.iter().find(covers) else { return true };
        let shift = if caller.is_member(file.gid) { 3 } else { 0 };
        let digit = |bits: u32| (bits >> shift) & 7;
        let (bits, mode) = (digit(entry.mask), digit(file.mode.bits()));
        let shown = match entry.any {
            true => mode & bits != 0,
            false => bits != 0 && mode & bits == bits,
        };
        caller.is_root() || caller.uid == file.uid || shown
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Entry { by_user, first, last, any, mask }| {
            let name = if *by_user { "uid" } else { "gid" };
            let sign = if *any { '+' } else { '-' };
            write!(f, ",cloak_{name}={first}-{last}:{sign}{mask:03o}")
        })
    }
}
