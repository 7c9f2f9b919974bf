//! The files whose state moves.

use std::net::IpAddr;

use crate::FileKey;

/// The files whose state moves together: all files of a volume, or those of some of its exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovingFiles {
    pub(crate) volume: u64,
    /// The exports; none for the whole volume.
    pub(crate) exports: Option<Box<[u32]>>,
    /// The address of the server that moves with them.
    pub(crate) address: Option<IpAddr>,
}

impl MovingFiles {
    /// The files of these exports of a volume. No file may be used through one of them and another
    /// export as well: its locks would be decided in two places.
    #[must_use]
    pub fn of_exports(volume: u64, exports: &[u32]) -> Self {
        Self { volume, exports: Some(exports.into()), address: None }
    }

    /// The same files, with which an address of the server moves. Clients go on at the other server
    /// in the sessions that they have made by it.
    #[must_use]
    pub fn with_address(self, address: Option<IpAddr>) -> Self {
        Self { address, ..self }
    }

    /// Returns whether a file is among them.
    pub(crate) fn has(&self, file: &FileKey) -> bool {
        file.volume == self.volume
            && self.exports.as_ref().is_none_or(|it| it.contains(&file.export))
    }

    /// Returns whether exports of this volume are among those whose files move.
    pub(crate) fn meets(&self, volume: u64, exports: &[u32]) -> bool {
        let is_moving = |export: &u32| self.exports.as_ref().is_none_or(|it| it.contains(export));
        volume == self.volume && exports.iter().any(is_moving)
    }
}

impl From<u64> for MovingFiles {
    /// All files of a volume.
    fn from(volume: u64) -> Self {
        Self { volume, exports: None, address: None }
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::Handle;

    use super::*;

    #[test]
    fn files_of_other_volumes_and_exports_stay() {
        let handle = Handle::new(&[1]).unwrap();
        let file = |volume, export| FileKey { volume, export, handle };
        let some = MovingFiles::of_exports(1, &[3, 4]);
        assert!(some.has(&file(1, 3)) && some.has(&file(1, 4)));
        assert!(!some.has(&file(1, 5)) && !some.has(&file(2, 3)));
        assert!(some.meets(1, &[5, 4]) && !some.meets(1, &[5]) && !some.meets(2, &[3]));
        let all = MovingFiles::from(1);
        assert!(all.has(&file(1, 5)) && !all.has(&file(2, 5)));
        assert!(all.meets(1, &[5]) && !all.meets(1, &[]));
    }
}
