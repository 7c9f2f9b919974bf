use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_state::{Engine, JournalPosition, Record, Recovered};
use comity_vfs::AsServer;

use crate::error::StoreError;
use crate::medium::{Medium, MediumError, OpenMedium};
use crate::redb_file;

/// The engine's records, on a [`Medium`].
pub struct Store {
    name: String,
    starts: u32,
    broken: AtomicBool,
    writer: Mutex<Writer>,
}

struct Writer {
    medium: Box<dyn Medium>,
    /// All records that are stored or must be; `repair` writes them to a broken medium.
    known: Recovered,
}

impl Store {
    /// Opens the store in the file `path`, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Format`].
    pub fn open(server: &AsServer, path: &Path) -> Result<Self, StoreError> {
        redb_file::open(server, path).map(Self::on)
    }

    /// Makes a store on a medium that was just opened.
    #[must_use]
    pub fn on(opened: OpenMedium) -> Self {
        let OpenMedium { medium, starts, known } = opened;
        let (name, broken) = (medium.name(), AtomicBool::new(false));
        Self { name, starts, broken, writer: Mutex::new(Writer { medium, known }) }
    }

    /// Returns the number of times that the medium was opened, this time included.
    #[must_use]
    pub const fn starts(&self) -> u32 {
        self.starts
    }

    /// Returns the clients that may reclaim their state, and for each the files whose state it has
    /// lost; and the files whose sizes may be unknown.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.writer().known.clone()
    }

    /// Returns whether nothing can be stored at present, until [`Store::repair`] succeeds.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Waits until all that the engine recorded before `position` is on stable storage, or stores
    /// it together with all other pending records.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Broken`]: the reply must not promise anything.
    pub fn settle(&self, engine: &Engine, position: JournalPosition) -> Result<(), StoreError> {
        let mut writer = self.writer();
        if engine.is_stored(position) {
            return Ok(());
        }
        let (taken, records) = writer.take(engine);
        if self.is_broken() {
            return Err(StoreError::Broken { name: self.name.clone() });
        }
        if let Err(source) = writer.apply(&records) {
            self.broken.store(true, Ordering::Release);
            return Err(self.unwritten(source));
        }
        engine.stored(taken);
        Ok(())
    }

    /// Stores all known records again if the medium could not be written; returns whether that was
    /// needed.
    ///
    /// # Errors
    /// [`StoreError::Write`]: it still cannot be written.
    pub fn repair(&self, engine: &Engine) -> Result<bool, StoreError> {
        let mut writer = self.writer();
        if !self.is_broken() {
            return Ok(false);
        }
        let (taken, _) = writer.take(engine);
        writer.replace().map_err(|source| self.unwritten(source))?;
        self.broken.store(false, Ordering::Release);
        engine.stored(taken);
        Ok(true)
    }

    fn unwritten(&self, source: MediumError) -> StoreError {
        StoreError::Write { name: self.name.clone(), source }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Takes the records to store from the engine.
    fn take(&mut self, engine: &Engine) -> (JournalPosition, Vec<Record>) {
        let mut records = Vec::new();
        let taken = engine.poll_records(&mut records);
        records.iter().cloned().for_each(|record| self.known.apply(record));
        (taken, records)
    }

    /// Stores records under the server's own identity: the thread may have served a caller.
    fn apply(&mut self, records: &[Record]) -> Result<(), MediumError> {
        self.medium.apply(&AsServer::here()?, records)
    }

    /// Stores all that is known again, under the server's own identity.
    fn replace(&mut self) -> Result<(), MediumError> {
        self.medium.replace(&AsServer::here()?, &self.known)
    }
}
