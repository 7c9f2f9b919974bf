//! The owners of mirrors. A data server of NFSv3 knows nothing of layouts: clients call it as a
//! user and a group that only the layout names (RFC 8435, 2.2), and lose the mirror when it gets
//! another owner.

use comity_vfs::{Cred, Gid, Mode, Result, SetAttr, Status, Uid};

use crate::data_files::{DataFile, DataFiles};
use crate::mirrored_files::Mirrored;
use crate::mirrors::MirrorSet;
use crate::record::PlaceRecord;
use crate::synthetic_ids::{MirrorOwner, SyntheticIds};

/// The owner writes, and the group reads.
const MODE: Mode = Mode::new(0o640);

/// A mirror as a layout names it: the data server's own handle, and the ids of clients that write.
pub(crate) type OwnedMirror = (Box<[u8]>, SyntheticIds);

impl DataFiles {
    /// Returns the mirrors of a file that answer, with their owners. A mirror whose owner is
    /// unknown gets another one: an earlier process may have named it in a layout. Only one thread
    /// at a time may call this for a file.
    pub(crate) fn owned_mirrors(&self, record: &PlaceRecord) -> Result<Mirrored<OwnedMirror>> {
        self.at_mirrors(record, |at| {
            let found = self.on_mirror((record, at), |file| {
                let ids = match self.known.owners.get(&(record.number, at)) {
                    Some(MirrorOwner::Used(ids)) => ids,
                    _ => self.give((record, at), file)?,
                };
                let handle = self.server_handle((record, at), file)?;
                self.known.owners.insert((record.number, at), MirrorOwner::Used(ids));
                Ok((handle, ids))
            });
            found?.ok_or(Status::NoEnt)
        })
    }

    /// Takes the mirrors of a file from all clients with a layout; returns the mirrors that failed.
    /// Only one thread at a time may call this for a file.
    pub(crate) fn fence_mirrors(&self, record: &PlaceRecord) -> Result<MirrorSet> {
        let fenced = self.at_mirrors(record, |at| {
            let key = (record.number, at);
            if self.known.owners.get(&key) == Some(MirrorOwner::Unused) {
                return Ok(());
            }
            self.on_mirror((record, at), |file| self.give((record, at), file))?;
            self.known.owners.insert(key, MirrorOwner::Unused);
            Ok(())
        })?;
        Ok(fenced.failed)
    }

    /// Returns whether a client may have a layout that names a mirror of a file.
    pub(crate) fn may_have_layouts(&self, record: &PlaceRecord) -> bool {
        let owner = |at| self.known.owners.get(&(record.number, at));
        (0..record.servers.len()).any(|at| owner(at) != Some(MirrorOwner::Unused))
    }

    /// Gives a mirror an owner that no layout has named.
    fn give(&self, (record, at): (&PlaceRecord, usize), file: &DataFile) -> Result<SyntheticIds> {
        self.known.owners.remove(&(record.number, at));
        let ids = SyntheticIds::draw()?;
        let owner = (Some(Uid::new(ids.uid)), Some(Gid::new(ids.gid)));
        let set = SetAttr { mode: Some(MODE), uid: owner.0, gid: owner.1, ..SetAttr::default() };
        file.fs.setattr(&Cred::root(), &file.handle, &set, None)?;
        Ok(ids)
    }
}
