use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The numbers that the mounts of this process have.
#[derive(Debug, Clone, Default)]
pub(super) struct MountNumbers(Arc<Mutex<BTreeSet<u32>>>);

/// The number of a mount, which no other mount of this process has until this is dropped.
#[derive(Debug)]
pub(super) struct MountNumber {
    number: u32,
    numbers: MountNumbers,
}

impl MountNumbers {
    /// Takes the lowest free number for a mount: the mounts of the next run get the same ones.
    pub(super) fn take(&self) -> MountNumber {
        let mut taken = self.taken();
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
        taken.insert(number);
        MountNumber { number, numbers: self.clone() }
    }

    fn taken(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MountNumber {
    pub(super) const fn get(&self) -> u32 {
        self.number
    }
}

impl Drop for MountNumber {
    fn drop(&mut self) {
        self.numbers.taken().remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_free_again_after_its_mount() {
        let numbers = MountNumbers::default();
        let (first, second) = (numbers.take(), numbers.take());
        assert_eq!((first.get(), second.get()), (0, 1));
        drop(first);
        assert_eq!((numbers.take().get(), second.get()), (0, 1));
    }
}
