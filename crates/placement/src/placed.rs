use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{
    Access, Attr, Cred, Disk, FileType, Fs, Handle, Name, Node, Result, Status, Threshold,
    XattrMode,
};
use quick_cache::sync::Cache;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::PlacementKey;
use crate::data_files::DataFiles;
use crate::data_server::DataServer;
use crate::devices::Devices;
use crate::holds::{Hold, Holds, Use};
use crate::limits::{FILE_LOCKS, RECORDS_MAX};
use crate::record::PlaceRecord;
use crate::shards::shard_of;
use crate::sizes::{self, SetIdBits};
use crate::used_space::UsedSpace;

/// The extended attribute with the place of a file.
pub(crate) const ATTRIBUTE: &[u8] = b"comity.placement";

/// The settings of a placement.
#[derive(Debug, Clone)]
pub struct PlacementSettings {
    /// The secret that the metadata server shares with the data servers.
    pub key: PlacementKey,
    /// The length of the stripe units of new files in bytes.
    pub unit_bytes: u32,
    /// The sizes below which clients should use the metadata server.
    pub threshold: Threshold,
    /// The data servers; new files are placed on those that are not being drained.
    pub servers: Vec<DataServer>,
}

/// A file system that puts new files in stripes on data servers. Names and attributes, sizes
/// included, are in the file system below, and so are the bytes of older files.
///
/// Reads and writes are passed to the data servers, so that clients without parallel NFS see the
/// same bytes.
pub struct Placed {
    pub(crate) below: Arc<dyn Fs>,
    pub(crate) files: DataFiles,
    pub(crate) used: UsedSpace,
    pub(crate) key: PlacementKey,
    pub(crate) unit_bytes: u32,
    pub(crate) threshold: Threshold,
    pub(crate) devices: Devices,
    pub(crate) holds: Holds,
    /// The places of files; `None` for files without one.
    pub(crate) records: Cache<Handle, Option<Arc<PlaceRecord>>>,
    /// Locks for changes of files, each with the number of truncations under it.
    locks: [Mutex<u64>; FILE_LOCKS],
}

/// A use of a placed file that is under way.
pub(crate) struct Using<'p> {
    /// The place of the file.
    pub(crate) record: Arc<PlaceRecord>,
    _hold: Hold<'p>,
}

impl Placed {
    /// Puts a placement over the file system of the metadata server.
    #[must_use]
    pub fn new(below: Arc<dyn Fs>, settings: PlacementSettings) -> Self {
        let PlacementSettings { key, unit_bytes, threshold, servers } = settings;
        let devices = Devices::new(&key, &servers);
        Self {
            below,
            files: DataFiles::new(servers),
            used: UsedSpace::new(),
            key,
            unit_bytes,
            threshold,
            devices,
            holds: Holds::default(),
            records: Cache::new(RECORDS_MAX),
            locks: [const { Mutex::new(0) }; FILE_LOCKS],
        }
    }

    /// Lets one thread at a time change the size or the place of a file. A thread that truncates
    /// the file counts that in the guard, before it begins.
    pub(crate) fn lock(&self, file: &Handle) -> MutexGuard<'_, u64> {
        shard_of(&self.locks, file).lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the place of a file; `None` if the file system below has its bytes.
    ///
    /// # Errors
    /// [`Status::Io`] if its attribute is damaged.
    pub(crate) fn record(&self, file: &Handle) -> Result<Option<Arc<PlaceRecord>>> {
        match self.records.get(file) {
            Some(known) => Ok(known),
            None => self.read_record(file, &self.lock(file)),
        }
    }

    /// Begins a use of a file; returns its place, which does not change during the use; `None` if
    /// the file system below has its bytes.
    ///
    /// # Errors
    /// [`Status::Delay`]: the file is being moved to other data servers. [`Status::Io`]: its
    /// attribute is damaged.
    pub(crate) fn using(&self, file: &Handle, what: Use) -> Result<Option<Using<'_>>> {
        if self.record(file)?.is_none() {
            return Ok(None);
        }
        let hold = self.holds.hold(file, what)?;
        Ok(self.record(file)?.map(|record| Using { record, _hold: hold }))
    }

    /// Gives a new file its place, unless it already has data.
    pub(crate) fn place(&self, made: &Node<Disk>) -> Result<Option<Arc<PlaceRecord>>> {
        let turn = self.lock(&made.handle);
        // A client may have found the file and used it without a place meanwhile.
        if let Some(known) = self.records.get(&made.handle) {
            return Ok(known);
        }
        match self.read_record(&made.handle, &turn)? {
            None if made.attr.file_type == FileType::Regular && made.attr.size == 0 => {
                self.write_record(&made.handle)
            }
            found => Ok(found),
        }
    }

    /// Forgets the place of a removed file.
    pub(crate) fn forget(&self, file: &Handle) {
        self.records.remove(file);
        self.used.forget(file);
    }

    /// Notes that data were written to data servers; returns the attributes afterwards.
    pub(crate) fn note(
        &self,
        file: &Handle,
        written: (Option<u64>, SetIdBits),
    ) -> Result<Attr<Disk>> {
        self.note_in_turn(&self.lock(file), file, written)
    }

    /// The same under the lock of the file.
    pub(crate) fn note_in_turn(
        &self,
        _: &MutexGuard<'_, u64>,
        file: &Handle,
        written: (Option<u64>, SetIdBits),
    ) -> Result<Attr<Disk>> {
        self.used.forget(file);
        sizes::note(&*self.below, file, written).map(|attr| self.used.shown(file, attr))
    }

    /// Refuses a caller without a right to a file. The owner may always read and write its file,
    /// because NFSv3 has no open (RFC 1813, 4.4).
    pub(crate) fn judge(
        &self,
        cred: &Cred<Disk>,
        file: &Handle,
        right: Access,
    ) -> Result<Attr<Disk>> {
        // A caller that may execute a file may read it, so that clients can run it.
        let allowing = if right == Access::READ { right | Access::EXECUTE } else { right };
        let (granted, attr) = self.below.access(cred, file, allowing)?;
        match attr.file_type {
            FileType::Directory => Err(Status::IsDir),
            FileType::Regular if granted.intersects(allowing) => Ok(attr),
            FileType::Regular if self.below.owns(cred, file)? => Ok(attr),
            FileType::Regular => Err(Status::Acces),
            _ => Err(Status::Inval),
        }
    }

    fn read_record(
        &self,
        file: &Handle,
        _: &MutexGuard<'_, u64>,
    ) -> Result<Option<Arc<PlaceRecord>>> {
        let record = match self.below.getxattr(&Cred::root(), file, Name::new(ATTRIBUTE)?) {
            Ok(bytes) => Some(Arc::new(self.decode(file, &bytes)?)),
            Err(Status::NoXattr | Status::NotSupp) => None,
            Err(status) => return Err(status),
        };
        self.records.insert(*file, record.clone());
        Ok(record)
    }

    fn decode(&self, file: &Handle, bytes: &[u8]) -> Result<PlaceRecord> {
        PlaceRecord::decode(&self.key, file, bytes).ok_or_else(|| {
            let fileid = self.below.getattr(file).map_or(0, |attr| attr.fileid);
            tracing::error!(
                fileid,
                "the attribute user.comity.placement of a file was not written by this server for \
                 this file, or the key of the placement is another one; restore either"
            );
            Status::Io
        })
    }

    /// Makes a place on the data servers of new files.
    pub(crate) fn new_record(&self) -> Result<PlaceRecord> {
        let mut number = [0; 16];
        let count = getrandom(&mut number, GetRandomFlags::empty());
        if count != Ok(number.len()) {
            return Err(Status::ServerFault);
        }
        let number = u128::from_be_bytes(number);
        let (unit_bytes, servers) = (self.unit_bytes, self.files.names());
        Ok(PlaceRecord { number, unit_bytes, servers })
    }

    fn write_record(&self, file: &Handle) -> Result<Option<Arc<PlaceRecord>>> {
        let record = self.new_record()?;
        let (name, bytes) = (Name::new(ATTRIBUTE)?, record.encode(&self.key, file));
        let written =
            self.below.setxattr(&Cred::root(), file, name, Some(&bytes), XattrMode::Create);
        let record = match written {
            Ok(_) => Some(Arc::new(record)),
            Err(status) => {
                tracing::warn!(%status, "a new file got no place; its data stay on this server");
                None
            }
        };
        self.records.insert(*file, record.clone());
        Ok(record)
    }
}
