use std::sync::Arc;

use comity_vfs::{
    Create, Cred, Data, DataServerState, Fs, Handle, Mode, Name, Read, ReadInto, Result, SetAttr,
    Status, XattrMode,
};
use quick_cache::sync::Cache;

use crate::data_server::DataServer;
use crate::due_labels::DueLabels;
use crate::fences::{FENCE_ATTRIBUTE, stored};
use crate::limits::{DATA_HANDLES_MAX, MIRRORS_MAX};
use crate::record::PlaceRecord;
use crate::stripes::{StripePiece, pieces};
use crate::synthetic_ids::MirrorOwner;

/// The files of a placement on its data servers.
pub(crate) struct DataFiles {
    servers: Vec<DataServer>,
    pub(crate) known: Arc<KnownDataFiles>,
}

/// The data files of a placement as far as they are known.
pub(crate) struct KnownDataFiles {
    /// The handles of files on data servers, by the number of the file and that of the server in
    /// the record of the file.
    pub(crate) handles: Cache<(u128, usize), Handle>,
    /// The fences of files that this process has made or raised, in the same way.
    fences: Cache<(u128, usize), KnownFence>,
    /// The owners of mirrors that this process has made or changed, in the same way.
    pub(crate) owners: Cache<(u128, usize), MirrorOwner>,
    due_labels: DueLabels,
}

/// The fence of a file on one data server.
#[derive(Clone, Copy)]
struct KnownFence {
    number: u64,
    /// True if a handle with this number was given out.
    is_used: bool,
}

/// A file on one data server.
pub(crate) struct DataFile {
    pub(crate) fs: Arc<dyn Fs>,
    pub(crate) handle: Handle,
}

impl DataFiles {
    pub(crate) fn new(servers: Vec<DataServer>) -> Self {
        let (handles, fences) = (Cache::new(DATA_HANDLES_MAX), Cache::new(DATA_HANDLES_MAX));
        let (owners, due_labels) = (Cache::new(DATA_HANDLES_MAX), DueLabels::default());
        let known = KnownDataFiles { handles, fences, owners, due_labels };
        Self { servers, known: Arc::new(known) }
    }

    /// The same with other data servers.
    pub(crate) fn with(&self, servers: Vec<DataServer>) -> Self {
        Self { servers, known: Arc::clone(&self.known) }
    }

    /// The data servers that new files are placed on.
    pub(crate) fn taking(&self) -> impl Iterator<Item = &DataServer> {
        self.servers.iter().filter(|server| !server.is_draining)
    }

    /// Returns whether a file has data on a data server that is being drained.
    pub(crate) fn is_draining(&self, record: &PlaceRecord) -> bool {
        let mut servers = record.servers.iter().filter_map(|name| self.named(name));
        servers.any(|server| server.is_draining)
    }

    /// The files whose labels are due.
    pub(crate) fn due_labels(&self) -> &DueLabels {
        &self.known.due_labels
    }

    /// The states of the data servers, with the number of broken mirrors on each.
    pub(crate) fn states(&self, broken: impl Fn(&str) -> u64) -> Vec<DataServerState> {
        self.servers.iter().map(|server| server.state(broken(&server.name))).collect()
    }

    /// Reads a range of a file in stripes of this unit. It must not extend beyond the file's end.
    /// Bytes that no data server has are zero.
    pub(crate) fn read_stripes(
        &self,
        (record, unit_bytes): (&PlaceRecord, u32),
        (offset, length): (u64, u64),
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        for piece in pieces(unit_bytes, record.servers.len(), offset, length) {
            let end = bytes.len() + piece.length as usize;
            if let Some(file) = self.find(record, piece.server)? {
                read_piece(&file, piece, bytes)?;
            }
            bytes.resize(end, 0);
        }
        Ok(())
    }

    /// Writes data to a file in stripes of this unit.
    pub(crate) fn write_stripes(
        &self,
        (record, unit_bytes): (&PlaceRecord, u32),
        offset: u64,
        mut data: &[u8],
    ) -> Result<()> {
        let length = data.len() as u64;
        for piece in pieces(unit_bytes, record.servers.len(), offset, length) {
            let (own, rest) = data.split_at_checked(piece.length as usize).unwrap_or((data, &[]));
            write_piece(&self.make(record, piece.server)?, piece.offset, own)?;
            data = rest;
        }
        Ok(())
    }

    /// Returns when all data of a file are on stable storage; returns the bytes that they use.
    ///
    /// # Errors
    /// [`Status::Io`]: a data file that was used before is gone, and its data with it. The next
    /// call does not know it any more. [`Status`].
    pub(crate) fn commit(&self, record: &PlaceRecord) -> Result<u64> {
        let mut sum = 0_u64;
        for at in 0..record.servers.len() {
            let was_used = self.known.handles.get(&(record.number, at)).is_some();
            match self.on_mirror((record, at), commit_one)? {
                None if was_used => return Err(Status::Io),
                used => sum = sum.saturating_add(used.unwrap_or(0)),
            }
        }
        Ok(sum)
    }

    /// Removes the bytes of a file from the offset `size` on; returns the bytes that the others
    /// use.
    pub(crate) fn cut(&self, record: &PlaceRecord, size: u64) -> Result<u64> {
        self.each(record, |file| cut_one(file, size))
    }

    /// Removes a file from all data servers.
    pub(crate) fn remove(&self, record: &PlaceRecord) -> Result<()> {
        self.forget(record);
        self.remove_at(record, &(0..record.servers.len()).collect::<Vec<_>>())
    }

    /// Removes the data files of these numbers.
    pub(crate) fn remove_at(&self, record: &PlaceRecord, which: &[usize]) -> Result<()> {
        let mut outcome = Ok(());
        for at in which {
            outcome = outcome.and(self.remove_one(record, *at));
        }
        outcome
    }

    /// Forgets what is known of the data files of a file.
    pub(crate) fn forget(&self, record: &PlaceRecord) {
        for at in 0..record.servers.len().max(MIRRORS_MAX) {
            self.known.handles.remove(&(record.number, at));
            self.known.fences.remove(&(record.number, at));
            self.known.owners.remove(&(record.number, at));
        }
    }

    fn remove_one(&self, record: &PlaceRecord, at: usize) -> Result<()> {
        self.known.handles.remove(&(record.number, at));
        let (name, fs) = (record.name(), self.server(record, at)?);
        match fs.remove(&Cred::root(), &fs.root(), Name::new(name.as_bytes())?) {
            Ok(_) | Err(Status::NoEnt) => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Returns the handles that the data servers themselves have for a file, with its fences there.
    /// Missing files are created. Only one thread at a time may call this for a file.
    ///
    /// The first call for a file raises its fences: an earlier process of this server may have
    /// given out layouts that nobody knows of any more.
    pub(crate) fn own_handles(&self, record: &PlaceRecord) -> Result<Vec<(Box<[u8]>, u64)>> {
        let own = |at| {
            let file = self.make(record, at)?;
            let handle = self.server_handle((record, at), &file)?;
            let fence = match self.known.fences.get(&(record.number, at)) {
                Some(known) => known.number,
                None => self.raise((record, at), &file)?,
            };
            self.known
                .fences
                .insert((record.number, at), KnownFence { number: fence, is_used: true });
            Ok((handle, fence))
        };
        (0..record.servers.len()).map(own).collect()
    }

    /// Returns the handle that one of the data servers itself has for a file.
    pub(crate) fn server_handle(
        &self,
        (record, at): (&PlaceRecord, usize),
        file: &DataFile,
    ) -> Result<Box<[u8]>> {
        let server = record.servers.get(at).and_then(|name| self.named(name));
        server.ok_or(Status::Io)?.files.server_handle(&file.handle)
    }

    /// Raises the fences of a file on all data servers where handles may have been given out since
    /// the last time; it also tries those after one that fails. Only one thread at a time may call
    /// this for a file.
    pub(crate) fn fence(&self, record: &PlaceRecord) -> Result<()> {
        let raise = |at| {
            if self.known.fences.get(&(record.number, at)).is_some_and(|known| !known.is_used) {
                return Ok(());
            }
            match self.find(record, at)? {
                Some(file) => self.raise((record, at), &file).map(drop),
                None => Ok(()),
            }
        };
        (0..record.servers.len()).map(raise).fold(Ok(()), Result::and)
    }

    /// Raises the fence of a file on one data server; returns the new one.
    fn raise(&self, (record, at): (&PlaceRecord, usize), file: &DataFile) -> Result<u64> {
        let (fs, known) = (&*file.fs, self.known.fences.remove(&(record.number, at)));
        let before = match known {
            Some((_, known)) => known.number,
            None => stored(fs, &file.handle)?,
        };
        let fence = before.checked_add(1).ok_or(Status::ServerFault)?;
        let (name, value) = (Name::new(FENCE_ATTRIBUTE)?, fence.to_be_bytes());
        fs.setxattr(&Cred::root(), &file.handle, name, Some(&value), XattrMode::Either)?;
        self.known.fences.insert((record.number, at), KnownFence { number: fence, is_used: false });
        Ok(fence)
    }

    /// Does work on each data file; returns the sum of the results.
    fn each(&self, record: &PlaceRecord, work: impl Fn(&DataFile) -> Result<u64>) -> Result<u64> {
        let mut sum = 0_u64;
        for at in 0..record.servers.len() {
            if let Some(file) = self.find(record, at)? {
                sum = sum.saturating_add(work(&file)?);
            }
        }
        Ok(sum)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&DataServer> {
        self.servers.iter().find(|server| *server.name == *name)
    }

    /// Returns whether the placement has one of the data servers of a file.
    pub(crate) fn is_known(&self, record: &PlaceRecord, at: usize) -> bool {
        record.servers.get(at).is_some_and(|name| self.named(name).is_some())
    }

    /// Returns the folder of one of the data servers of a file.
    pub(crate) fn server(&self, record: &PlaceRecord, at: usize) -> Result<Arc<dyn Fs>> {
        let name = record.servers.get(at).ok_or(Status::ServerFault)?;
        let found = self.named(name).ok_or_else(|| {
            tracing::warn!(
                server = &**name,
                "a file is on a data server that its placement does not name; add it again"
            );
            Status::Io
        })?;
        found.files.reach()
    }

    /// Finds the file on one of its data servers; returns `None` if nothing was written there.
    pub(crate) fn find(&self, record: &PlaceRecord, at: usize) -> Result<Option<DataFile>> {
        let fs = self.server(record, at)?;
        if let Some(handle) = self.known.handles.get(&(record.number, at)) {
            return Ok(Some(DataFile { fs, handle }));
        }
        let (name, top) = (record.name(), fs.root());
        match fs.lookup(&Cred::root(), &top, Name::new(name.as_bytes())?) {
            Ok(entry) => {
                let handle = entry.node.handle;
                self.known.handles.insert((record.number, at), handle);
                Ok(Some(DataFile { fs, handle }))
            }
            Err(Status::NoEnt) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Does work on one of the data files of a file; returns `None` if there is none. A handle that
    /// is stale is looked up again, as tables of long handles forget some.
    pub(crate) fn on_mirror<T>(
        &self,
        (record, at): (&PlaceRecord, usize),
        work: impl Fn(&DataFile) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(file) = self.find(record, at)? else { return Ok(None) };
        match work(&file) {
            Err(Status::Stale) => {
                self.known.handles.remove(&(record.number, at));
                self.find(record, at)?.map(|file| work(&file)).transpose()
            }
            done => done.map(Some),
        }
    }

    /// Finds the file on one of its data servers, or creates it.
    pub(crate) fn make(&self, record: &PlaceRecord, at: usize) -> Result<DataFile> {
        if let Some(file) = self.find(record, at)? {
            return Ok(file);
        }
        let fs = self.server(record, at)?;
        let (name, top) = (record.name(), fs.root());
        let set = SetAttr { mode: Some(Mode::new(0o600)), ..SetAttr::default() };
        let name = Name::new(name.as_bytes())?;
        let made = fs.create(&Cred::root(), &top, name, &Create::Unchecked(set))?;
        let handle = made.value.handle;
        self.known.handles.insert((record.number, at), handle);
        // Nobody has a handle of a new file, which has no fence yet.
        let unused = KnownFence { number: 0, is_used: false };
        self.known.fences.insert((record.number, at), unused);
        self.known.due_labels.note(&record.file);
        Ok(DataFile { fs, handle })
    }
}

/// Returns when the data of a data file are on stable storage; returns the bytes that they use.
///
/// # Errors
/// [`Status::Stale`]: the file is gone; [`Status`].
pub(crate) fn commit_one(file: &DataFile) -> Result<u64> {
    Ok(file.fs.commit(&file.handle)?.ok_or(Status::Stale)?.used)
}

/// Removes the bytes of a data file from the offset `size` on; returns the bytes that the others
/// use.
pub(crate) fn cut_one(file: &DataFile, size: u64) -> Result<u64> {
    let mut attr = file.fs.getattr(&file.handle)?;
    if attr.size > size {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        let change = file.fs.setattr(&Cred::root(), &file.handle, &set, None)?;
        attr = change.after.unwrap_or(attr);
    }
    Ok(attr.used)
}

/// Appends the bytes of a piece that a data server has.
pub(crate) fn read_piece(file: &DataFile, piece: StripePiece, bytes: &mut Vec<u8>) -> Result<()> {
    let start = bytes.len() as u64;
    loop {
        let done = bytes.len() as u64 - start;
        let rest = u32::try_from(piece.length.saturating_sub(done)).unwrap_or(u32::MAX);
        if rest == 0 {
            return Ok(());
        }
        let mut into = ReadInto { opened: true, ..ReadInto::new(bytes) };
        let at = piece.offset + done;
        let Read { data, eof, .. } =
            file.fs.read(&Cred::root(), &file.handle, at, rest, &mut into)?;
        match data {
            Data::Appended(count) if count > 0 && !eof => {}
            Data::Appended(_) => return Ok(()),
            // A reference was not asked for.
            Data::File { .. } => return Err(Status::ServerFault),
        }
    }
}

pub(crate) fn write_piece(file: &DataFile, mut offset: u64, mut data: &[u8]) -> Result<()> {
    while !data.is_empty() {
        let count = file.fs.write_opened(&Cred::root(), &file.handle, offset, data)?;
        match data.get(count as usize..) {
            Some(rest) if count > 0 => data = rest,
            _ => return Err(Status::Io),
        }
        offset += u64::from(count);
    }
    Ok(())
}
