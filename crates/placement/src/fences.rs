//! The fences of the files of a data server. A handle of a layout has the number that the fence of
//! the file had when the handle was sealed, and is refused when the fence was raised since.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Fs, Handle, Name, Result, Status};

use crate::limits::{FENCE_SHARDS, FENCES_MAX};

/// The extended attribute of a file of a data server with its fence.
pub const FENCE_ATTRIBUTE: &[u8] = b"comity.fence";

/// The fences of all files that a data server has met. They are stored in the files; this is a
/// cache of them, and counts the calls that have passed each fence.
#[derive(Default)]
pub struct Fences {
    shards: [Mutex<HashMap<Handle, Arc<Fence>>>; FENCE_SHARDS],
}

/// The fence of one file.
#[derive(Default)]
struct Fence {
    state: Mutex<FenceState>,
    passed: Condvar,
}

#[derive(Default)]
struct FenceState {
    /// The number in the file; `None` if it was not read yet.
    number: Option<u64>,
    /// For each number that handles of calls under way have, the count of those calls.
    under_way: Vec<(u64, usize)>,
}

/// A call that has passed a fence. While it lives, the fence is not raised beyond it.
pub struct Passed {
    fence: Arc<Fence>,
    number: u64,
}

impl Fences {
    /// Lets a call pass whose handle has this number.
    ///
    /// # Errors
    /// [`Status::Stale`] if the fence is higher: a client that gets this error gives its layout up,
    /// and goes to the metadata server (RFC 8881, 13.6). [`Status::Io`] if the number in the file
    /// is damaged; [`Status`].
    pub fn pass(&self, fs: &dyn Fs, file: &Handle, number: u64) -> Result<Passed> {
        let fence = self.of(file);
        let mut state = fence.lock();
        let current = match state.number {
            Some(known) => known,
            None => stored(fs, file)?,
        };
        state.number = Some(current);
        if number < current {
            return Err(Status::Stale);
        }
        match state.under_way.iter_mut().find(|(of, _)| *of == number) {
            Some((_, calls)) => *calls += 1,
            None => state.under_way.push((number, 1)),
        }
        drop(state);
        Ok(Passed { fence, number })
    }

    /// Raises the fence of a file by `store`, which writes `value` to the attribute of the file.
    /// Returns when no call is under way whose handle has a lower number.
    ///
    /// # Errors
    /// [`Status::Inval`] if the value is no number; the error of `store`.
    pub fn raise<T>(
        &self,
        file: &Handle,
        value: Option<&[u8]>,
        store: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let number = value.and_then(decode).ok_or(Status::Inval)?;
        let fence = self.of(file);
        let mut state = fence.lock();
        // If the result of a failed attempt is unclear, the next call reads the number again.
        state.number = None;
        let stored = store()?;
        state.number = Some(number);
        while state.under_way.iter().any(|(of, _)| *of < number) {
            state = fence.passed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(stored)
    }

    fn of(&self, file: &Handle) -> Arc<Fence> {
        let sum = file
            .bytes()
            .iter()
            .fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
        // The index is below the length.
        #[allow(clippy::indexing_slicing, reason = "a remainder is less than the divisor")]
        let shard = &self.shards[sum % FENCE_SHARDS];
        let mut fences = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if fences.len() >= FENCES_MAX / FENCE_SHARDS {
            // A fence that a call holds is kept, so that all calls of a file meet the same one.
            fences.retain(|_, fence| Arc::strong_count(fence) > 1);
        }
        Arc::clone(fences.entry(*file).or_default())
    }
}

impl std::fmt::Debug for Fences {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fences")
    }
}

impl Fence {
    fn lock(&self) -> MutexGuard<'_, FenceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        let mut state = self.fence.lock();
        if let Some((_, calls)) = state.under_way.iter_mut().find(|(of, _)| *of == self.number) {
            *calls -= 1;
        }
        state.under_way.retain(|(_, calls)| *calls > 0);
        drop(state);
        self.fence.passed.notify_all();
    }
}

/// Reads the fence of a file; a file without the attribute has the fence zero.
///
/// # Errors
/// [`Status::Io`] if the attribute is damaged; [`Status`].
pub(crate) fn stored(fs: &dyn Fs, file: &Handle) -> Result<u64> {
    match fs.getxattr(&Cred::root(), file, Name::new(FENCE_ATTRIBUTE)?) {
        Ok(value) => decode(&value).ok_or(Status::Io),
        Err(Status::NoXattr) => Ok(0),
        Err(status) => Err(status),
    }
}

fn decode(value: &[u8]) -> Option<u64> {
    value.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use comity_backend::{Memory, MemoryOptions};
    use comity_vfs::{Create, SetAttr, XattrMode};

    use super::*;

    fn file() -> (Memory, Handle) {
        let fs = Memory::new(MemoryOptions::default()).unwrap();
        let how = Create::Unchecked(SetAttr::default());
        let made = fs.create(&Cred::root(), &fs.root(), Name::new(b"f").unwrap(), &how).unwrap();
        (fs, made.value.handle)
    }

    fn raise(fences: &Fences, fs: &dyn Fs, file: &Handle, number: u64) -> Result<()> {
        let value = number.to_be_bytes();
        let name = Name::new(FENCE_ATTRIBUTE).unwrap();
        fences
            .raise(file, Some(&value), || {
                fs.setxattr(&Cred::root(), file, name, Some(&value), XattrMode::Either)
            })
            .map(drop)
    }

    #[test]
    fn a_number_below_the_fence_is_stale_also_when_the_fence_is_read_anew() {
        let (fs, file) = file();
        let fences = Fences::default();
        assert!(fences.pass(&fs, &file, 0).is_ok());
        raise(&fences, &fs, &file, 2).unwrap();
        for fences in [fences, Fences::default()] {
            assert_eq!(fences.pass(&fs, &file, 1).err(), Some(Status::Stale));
            assert!(fences.pass(&fs, &file, 2).is_ok());
        }
    }

    #[test]
    fn a_value_that_is_no_number_is_refused_and_not_stored() {
        let (fs, file) = file();
        let refused = Fences::default().raise(&file, Some(b"2"), || Ok(()));
        assert_eq!(refused, Err(Status::Inval));
        assert_eq!(Fences::default().raise(&file, None, || Ok(())), Err(Status::Inval));
        assert_eq!(stored(&fs, &file), Ok(0));
    }

    #[test]
    fn a_fence_is_raised_when_the_calls_that_have_passed_it_are_over() {
        let (fs, file) = file();
        let fences = Fences::default();
        let (before, same) = (fences.pass(&fs, &file, 0).unwrap(), fences.pass(&fs, &file, 1));
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| told.send(raise(&fences, &fs, &file, 1)));
            assert!(heard.recv_timeout(Duration::from_millis(100)).is_err(), "a call is under way");
            drop(before);
            assert_eq!(heard.recv_timeout(Duration::from_secs(20)), Ok(Ok(())));
        });
        drop(same);
    }
}
