use std::collections::HashMap;

use super::kept_ranges::WriteVerifier;

/// Data of a file that the server has copied itself and that is not known to be stable: for each
/// verifier, the serial numbers of the first and the last copy.
#[derive(Debug, Default)]
pub(super) struct Copies(HashMap<WriteVerifier, (u64, u64)>);

impl Copies {
    /// Adds copies with serial numbers from `first` to `last`.
    pub(super) fn add(&mut self, verifier: WriteVerifier, (first, last): (u64, u64)) {
        let known = self.0.entry(verifier).or_insert((first, last));
        *known = (known.0.min(first), known.1.max(last));
    }

    /// Adds all of these copies.
    pub(super) fn join(&mut self, copies: Self) {
        copies.0.into_iter().for_each(|(verifier, serials)| self.add(verifier, serials));
    }

    /// Forgets the copies up to a serial number that a COMMIT with this verifier has made stable.
    pub(super) fn settle(&mut self, serial: u64, verifier: WriteVerifier) {
        let Some((first, last)) = self.0.get_mut(&verifier) else { return };
        *first = (*first).max(serial + 1);
        if *first > *last {
            self.0.remove(&verifier);
        }
    }

    /// Returns whether there is a copy up to a serial number.
    pub(super) fn has(&self, serial: u64) -> bool {
        self.0.values().any(|(first, _)| *first <= serial)
    }

    /// Removes and returns the copies of the verifiers that have one up to a serial number. Later
    /// copies of these verifiers are lost, too.
    pub(super) fn take(&mut self, serial: u64) -> Self {
        Self(self.0.extract_if(|_, (first, _)| *first <= serial).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
