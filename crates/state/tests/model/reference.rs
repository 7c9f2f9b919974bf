//! The model: the opens of each file, and an array with a cell for each byte.

use crate::step::{CELLS, CLIENTS, FILES};

/// A client's state of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Share {
    /// Access and deny bits, if it is open.
    pub(super) open: Option<(u32, u32)>,
    /// The lock of each byte: none, or true for writing and false for reading.
    pub(super) bytes: [Option<bool>; CELLS as usize],
}

/// The state of all clients for all files, and the time since each one called.
#[derive(Debug, Default)]
pub(super) struct Reference {
    pub(super) of: [[Share; FILES]; CLIENTS],
    pub(super) silent_seconds: [u64; CLIENTS],
}

pub(super) const LEASE_SECONDS: u64 = 90;

impl Reference {
    /// The clients with expired leases that must be evicted for `client` to get what it asks for,
    /// or `None` if a client with a lease has it.
    fn way(&self, client: usize, blocks: impl Fn(usize) -> bool) -> Option<Vec<usize>> {
        let others: Vec<usize> =
            (0..CLIENTS).filter(|other| *other != client && blocks(*other)).collect();
        let gone = |other: &usize| self.silent_seconds[*other] >= LEASE_SECONDS;
        others.iter().all(gone).then_some(others)
    }

    /// Opens a file; returns whether it is allowed.
    pub(super) fn open(&mut self, client: usize, file: usize, access: u32, deny: u32) -> bool {
        let blocks = |other: usize| {
            self.of[other][file].open.is_some_and(|(a, d)| a & deny != 0 || d & access != 0)
        };
        let own = blocks(client);
        let Some(gone) = self.way(client, blocks).filter(|_| !own) else { return false };
        gone.into_iter().for_each(|other| self.forget(other));
        let (a, d) = self.of[client][file].open.unwrap_or_default();
        self.of[client][file].open = Some((a | access, d | deny));
        true
    }

    /// Locks bytes; returns whether it is allowed.
    pub(super) fn lock(
        &mut self,
        client: usize,
        file: usize,
        (first, last): (u64, u64),
        write: bool,
    ) -> bool {
        let cells = first as usize..=last as usize;
        let blocks = |other: usize| {
            let held = &self.of[other][file].bytes;
            cells.clone().any(|cell| held[cell].is_some_and(|writes| writes || write))
        };
        let Some(gone) = self.way(client, blocks) else { return false };
        gone.into_iter().for_each(|other| self.forget(other));
        cells.for_each(|cell| self.of[client][file].bytes[cell] = Some(write));
        true
    }

    pub(super) fn unlock(&mut self, client: usize, file: usize, (first, last): (u64, u64)) {
        let cells = first as usize..=last as usize;
        cells.for_each(|cell| self.of[client][file].bytes[cell] = None);
    }

    pub(super) fn close(&mut self, client: usize, file: usize) {
        self.of[client][file] = Share::default();
    }

    /// Forgets a client with all its state.
    pub(super) fn forget(&mut self, client: usize) {
        self.of[client] = Default::default();
    }

    /// Returns whether a client has any state.
    pub(super) fn has_any(&self, client: usize) -> bool {
        self.of[client].iter().any(|share| share.open.is_some())
    }
}
