use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use comity_vfs::{Name, Result, Status};

use super::limits::ENTRY_BYTES;
use super::space::Charge;

/// The first cookie: 0 is the start of a listing, 1 and 2 are reserved for protocols that show `.`
/// and `..`.
const COOKIE_FIRST: u64 = 3;

/// The entries of a directory, in the order in which they were made.
///
/// A cookie is never used twice, so it stays valid whatever is added or removed.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) parent: u64,
    pub(super) subdirectories: u32,
    by_cookie: BTreeMap<u64, Entry>,
    by_name: HashMap<Arc<[u8]>, u64>,
    cookie_next: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: Arc<[u8]>,
    pub(super) fileid: u64,
}

impl Directory {
    pub(super) fn new(parent: u64) -> Self {
        Self {
            parent,
            subdirectories: 0,
            by_cookie: BTreeMap::new(),
            by_name: HashMap::new(),
            cookie_next: COOKIE_FIRST,
        }
    }

    pub(super) fn find(&self, name: Name<'_>) -> Option<u64> {
        let cookie = self.by_name.get(name.bytes())?;
        self.by_cookie.get(cookie).map(|entry| entry.fileid)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_cookie.is_empty()
    }

    /// Adds a name that does not exist.
    pub(super) fn insert(
        &mut self,
        charge: &mut Charge,
        name: Name<'_>,
        fileid: u64,
    ) -> Result<()> {
        charge.grow(entry_bytes(name))?;
        let name: Arc<[u8]> = name.bytes().into();
        self.by_name.insert(Arc::clone(&name), self.cookie_next);
        self.by_cookie.insert(self.cookie_next, Entry { name, fileid });
        self.cookie_next += 1;
        Ok(())
    }

    /// Gives an existing name to another object; its position in listings does not change.
    pub(super) fn replace(&mut self, name: Name<'_>, fileid: u64) {
        let entry =
            self.by_name.get(name.bytes()).and_then(|cookie| self.by_cookie.get_mut(cookie));
        if let Some(entry) = entry {
            entry.fileid = fileid;
        }
    }

    pub(super) fn remove(&mut self, charge: &mut Charge, name: Name<'_>) {
        if let Some(cookie) = self.by_name.remove(name.bytes()) {
            self.by_cookie.remove(&cookie);
            charge.shrink(entry_bytes(name));
        }
    }

    /// Returns up to `count` entries after `cookie`, each with its own cookie.
    pub(super) fn behind(&self, cookie: u64, count: usize) -> Result<Vec<(u64, Entry)>> {
        if cookie >= self.cookie_next {
            return Err(Status::BadCookie);
        }
        let behind = self.by_cookie.range(cookie + 1..).take(count);
        Ok(behind.map(|(cookie, entry)| (*cookie, entry.clone())).collect())
    }
}

fn entry_bytes(name: Name<'_>) -> u64 {
    ENTRY_BYTES + name.bytes().len() as u64
}
