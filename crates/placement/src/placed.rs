use std::sync::{Arc, MutexGuard};

use comity_vfs::{
    Access, Attr, BlockingHook, Cred, Disk, FileType, Fs, Handle, Name, Node, Result, Status,
    XattrMode,
};

use crate::PlacementKey;
use crate::data_files::DataFiles;
use crate::data_server::DataServer;
use crate::devices::Devices;
use crate::holds::{Hold, Use};
use crate::known::KnownFiles;
use crate::mirrors::MirrorSet;
use crate::random::random;
use crate::record::{PlaceRecord, Spread};
use crate::settings::PlacementSettings;
use crate::sizes::{self, SetIdBits};

/// The extended attribute with the place of a file.
pub(crate) const ATTRIBUTE: &[u8] = b"comity.placement";

/// A file system that puts new files in stripes on data servers. Names and attributes, sizes
/// included, are in the file system below, and so are the bytes of older files and of small ones.
///
/// Reads and writes are passed to the data servers, so that clients without parallel NFS see the
/// same bytes.
pub struct Placed {
    pub(crate) below: Arc<dyn Fs>,
    pub(crate) files: DataFiles,
    pub(crate) key: PlacementKey,
    pub(crate) settings: PlacementSettings,
    pub(crate) devices: Devices,
    pub(crate) known: Arc<KnownFiles>,
}

/// A use of a file that is under way.
pub(crate) struct FileUse<'p> {
    /// The place of the file; `None` if the file system below has its bytes.
    pub(crate) place: Option<Arc<PlaceRecord>>,
    hold: Hold<'p>,
}

/// A use of a placed file that is under way.
pub(crate) struct Using<'p> {
    /// The place of the file.
    pub(crate) record: Arc<PlaceRecord>,
    _hold: Hold<'p>,
}

impl Placed {
    /// Puts a placement over the file system of the metadata server. `key` is the secret that the
    /// metadata server shares with the data servers.
    #[must_use]
    pub fn new(below: Arc<dyn Fs>, key: PlacementKey, settings: PlacementSettings) -> Self {
        let devices = Devices::new(&key, &settings.servers);
        let files = DataFiles::new(settings.servers.clone());
        Self { below, files, key, settings, devices, known: Arc::new(KnownFiles::new()) }
    }

    /// Lets calls that wait for a file that is being placed wait through a hook, so that a server
    /// serves others meanwhile. Holds for all settings of this placement.
    #[must_use]
    pub fn blocking(self, hook: BlockingHook) -> Self {
        self.known.holds.wait_through(hook);
        self
    }

    /// Returns this placement with other settings. Both may be used at the same time, as calls that
    /// began before a reload use the old one: uses, moves, fences and devices of files are known to
    /// both. A data server of both must be reached in the same way.
    #[must_use]
    pub fn with(&self, settings: PlacementSettings) -> Self {
        self.over(Arc::clone(&self.below), settings)
    }

    /// The same over another file system of the same directory, which has the same handles.
    #[must_use]
    pub fn over(&self, below: Arc<dyn Fs>, settings: PlacementSettings) -> Self {
        let takes_files = |name: &str| [&self.settings, &settings].iter().any(|it| it.takes(name));
        self.known.drained.forget(takes_files);
        Self {
            below,
            files: self.files.with(settings.servers.clone()),
            key: self.key.clone(),
            devices: self.devices.with(&settings.servers),
            settings,
            known: Arc::clone(&self.known),
        }
    }

    /// Its settings.
    #[must_use]
    pub const fn settings(&self) -> &PlacementSettings {
        &self.settings
    }

    /// Returns whether a file is being moved to other data servers; waits for files that are being
    /// placed.
    #[must_use]
    pub fn has_moves(&self) -> bool {
        self.known.holds.has_moves()
    }

    /// Returns whether no file names a data server, as a drain has found
    /// ([`comity_vfs::Placement::note_drained`]).
    #[must_use]
    pub fn is_drained(&self, server: &str) -> bool {
        self.known.drained.contains(server)
    }

    /// Its secret.
    #[must_use]
    pub const fn key(&self) -> &PlacementKey {
        &self.key
    }

    /// See [`KnownFiles::lock`].
    pub(crate) fn lock(&self, file: &Handle) -> MutexGuard<'_, u64> {
        self.known.lock(file)
    }

    /// Returns the place of a file; `None` if the file system below has its bytes.
    ///
    /// # Errors
    /// [`Status::Io`] if its attribute is damaged.
    pub(crate) fn record(&self, file: &Handle) -> Result<Option<Arc<PlaceRecord>>> {
        match self.known.records.get(file) {
            Some(known) => Ok(known),
            None => self.read_record(file, &self.lock(file)),
        }
    }

    /// Begins a use of a file. Its place does not change during the use; if it has none, it gets
    /// none.
    ///
    /// # Errors
    /// [`Status::Delay`]: the file is being moved to other data servers. [`Status::Io`]: its
    /// attribute is damaged.
    pub(crate) fn begin_use(&self, file: &Handle, what: Use) -> Result<FileUse<'_>> {
        let hold = self.known.holds.hold(file, what)?;
        Ok(FileUse { place: self.record(file)?, hold })
    }

    /// Begins a use of a placed file; returns `None` if the file system below has its bytes.
    ///
    /// # Errors
    /// As [`Placed::begin_use`].
    pub(crate) fn using(&self, file: &Handle, what: Use) -> Result<Option<Using<'_>>> {
        let FileUse { place, hold } = self.begin_use(file, what)?;
        Ok(place.map(|record| Using { record, _hold: hold }))
    }

    /// Gives a new file its place, unless it already has data, or stays here until it grows.
    pub(crate) fn place(&self, made: &Node<Disk>) -> Result<Option<Arc<PlaceRecord>>> {
        if self.settings.placed_from_bytes().is_some() {
            return Ok(None);
        }
        let turn = self.lock(&made.handle);
        // A client may have found the file and used it without a place meanwhile.
        if let Some(known) = self.known.records.get(&made.handle) {
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
        self.known.records.remove(file);
        self.known.names.forget(file);
        self.known.used.forget(file);
        self.known.broken.forget(file);
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
        self.known.used.forget(file);
        sizes::note(&*self.below, file, written).map(|attr| self.known.used.shown(file, attr))
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

    /// The same as [`Placed::record`] under the lock of the file.
    pub(crate) fn record_in_turn(
        &self,
        turn: &MutexGuard<'_, u64>,
        file: &Handle,
    ) -> Result<Option<Arc<PlaceRecord>>> {
        match self.known.records.get(file) {
            Some(known) => Ok(known),
            None => self.read_record(file, turn),
        }
    }

    fn read_record(
        &self,
        file: &Handle,
        _: &MutexGuard<'_, u64>,
    ) -> Result<Option<Arc<PlaceRecord>>> {
        let record = match self.below.getxattr(&Cred::root(), file, Name::new(ATTRIBUTE)?) {
            Ok(bytes) => Some(self.noted(file, self.decode(file, &bytes)?)),
            Err(Status::NoXattr | Status::NotSupp) => None,
            Err(status) => return Err(status),
        };
        self.known.records.insert(*file, record.clone());
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

    /// Makes a place for a file on the data servers of new files.
    pub(crate) fn new_record(&self, file: &Handle) -> Result<PlaceRecord> {
        let number = u128::from_be_bytes(random()?);
        let (spread, servers) = match self.settings.mirrors {
            None => (Spread::Stripes(self.settings.unit_bytes), self.files.taking().collect()),
            Some(count) => self.mirrors_of_new_file(number, count),
        };
        let servers = servers.into_iter().map(|server| server.name.clone()).collect();
        Ok(PlaceRecord { file: *file, number, spread, servers })
    }

    /// Chooses the data servers of a mirrored file, first of all those that answer. If there are
    /// not enough of them, the mirrors on the others are broken from the start.
    fn mirrors_of_new_file(&self, number: u128, count: usize) -> (Spread, Vec<&DataServer>) {
        let mut servers: Vec<&DataServer> = self.files.taking().collect();
        let first = number % servers.len().max(1) as u128;
        servers.rotate_left(first as usize);
        let is_down = |server: &DataServer| !server.files.state().is_up;
        servers.sort_by_key(|server| is_down(server));
        servers.truncate(count);
        let down = servers.iter().enumerate().filter(|(_, server)| is_down(server));
        let down = down.fold(MirrorSet::NONE, |set, (at, _)| set.and(MirrorSet::of(at)));
        let broken = if down.is_part_of(servers.len()) { down } else { MirrorSet::NONE };
        (Spread::Mirrors(broken), servers)
    }

    /// Notes a file that has a broken mirror.
    pub(crate) fn noted(&self, file: &Handle, record: PlaceRecord) -> Arc<PlaceRecord> {
        let record = Arc::new(record);
        if record.is_degraded() {
            self.known.broken.note(file, &record, false);
        }
        record
    }

    fn write_record(&self, file: &Handle) -> Result<Option<Arc<PlaceRecord>>> {
        let record = self.new_record(file)?;
        let (name, bytes) = (Name::new(ATTRIBUTE)?, record.encode(&self.key));
        let written =
            self.below.setxattr(&Cred::root(), file, name, Some(&bytes), XattrMode::Create);
        let record = match written {
            Ok(_) => Some(self.noted(file, record)),
            Err(status) => {
                tracing::warn!(%status, "a new file got no place; its data stay on this server");
                None
            }
        };
        self.known.records.insert(*file, record.clone());
        Ok(record)
    }
}
