//! Names that the cached listing of a directory lacks.

use comity_vfs::{Handle, Name};

use super::Cache;
use crate::limits::UNLISTED_TIME_MAX;

impl Cache {
    /// Returns whether a name is missing because the cached listing of its directory lacks it. The
    /// listing of a directory that is not delegated says so only for a moment, because a program
    /// on another machine may have just made the name and told a program here.
    pub(super) fn is_missing_unlisted(&self, dir: &Handle, name: Name<'_>) -> bool {
        let is_fresh = || {
            let age = self.attributes.age(dir, self.now());
            age.is_some_and(|age| age < UNLISTED_TIME_MAX)
        };
        is_always_listed(name.bytes()) && (is_fresh() || self.is_true(dir)) && self.is_exact(dir)
    }

    /// Returns whether names in a directory that differ in a byte are different names.
    fn is_exact(&self, dir: &Handle) -> bool {
        let volume = self.fs.volume(dir);
        if let Some(is_exact) = self.exact_volumes.get(&volume) {
            return is_exact;
        }
        let Ok(properties) = self.fs.properties(dir) else { return false };
        let is_exact = !properties.case_insensitive;
        self.exact_volumes.insert(volume, is_exact);
        is_exact
    }
}

/// Returns whether servers list a name if they have it. Some have names that they do not list, such
/// as `.snapshot`, `.zfs` and `~snapshot`, and some compare other characters than those of ASCII by
/// their normal form.
fn is_always_listed(name: &[u8]) -> bool {
    name.is_ascii() && !name.starts_with(b".") && !name.starts_with(b"~")
}
