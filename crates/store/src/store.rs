use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_state::{Desk, Engine, Mark, Record, Recovered};
use redb::backends::FileBackend;
use redb::{
    Database, MultimapTable, MultimapTableDefinition, ReadableDatabase, ReadableMultimapTable,
    ReadableTable, Table, TableDefinition,
};

use crate::key;

const FORMAT: u32 = 2;
/// Files went by the number of their export, and clients had no identities.
const FORMAT_BY_EXPORT: u32 = 1;
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");
const CLIENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
/// The clients of format 1, without identities.
const NAMELESS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("clients");
const REVOKED: MultimapTableDefinition<'_, &[u8], &[u8]> = MultimapTableDefinition::new("revoked");

/// The embedded store: one file, one process.
pub struct Store {
    path: PathBuf,
    starts: u32,
    broken: AtomicBool,
    writer: Mutex<Writer>,
}

struct Writer {
    /// None if a write or a barrier has failed. What stands on the medium is not known then, and a
    /// second fsync of the file may succeed though pages of the first are lost.
    database: Option<Database>,
    /// All that is stored or is to be: a new file is made of it.
    known: Recovered,
}

/// Why there is no store, or why it stores nothing any more.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or read.
    #[error("the state of clients in {} cannot be read: {source}; moved away, the server starts \
        without it, and clients lose their locks", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: redb::Error,
    },
    /// It is of another version of this program.
    #[error("the state of clients in {} has format {found}, not {FORMAT}: it is of a newer comity",
        path.display())]
    Format {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It cannot be written: nothing is stored until [`Store::repair`].
    #[error("the state of clients in {} cannot be written: {source}", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: redb::Error,
    },
    /// It could not be written before, and has not been repaired.
    #[error("the state of clients in {} cannot be written at present", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
    },
}

impl Store {
    /// Opens the store in the file `path`, or makes it.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Format`].
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let read = |source| StoreError::Read { path: path.to_owned(), source };
        let file = private(path).map_err(|error| read(redb::Error::Io(error)))?;
        let opened = whole(|| {
            let database = database(file)?;
            let found = match format(&database)? {
                FORMAT_BY_EXPORT => upgrade(&database)?,
                found => found,
            };
            Ok((database, found))
        });
        let (database, found) = opened.map_err(read)?;
        name_is_stable(path).map_err(|error| read(redb::Error::Io(error)))?;
        if found != FORMAT {
            return Err(StoreError::Format { path: path.to_owned(), found });
        }
        let starts = count_start(&database).map_err(read)?;
        let known = whole(|| recovered(&database)).map_err(read)?;
        let writer = Mutex::new(Writer { database: Some(database), known });
        Ok(Self { path: path.to_owned(), starts, broken: AtomicBool::new(false), writer })
    }

    /// How often it was opened, this time among them.
    #[must_use]
    pub const fn starts(&self) -> u32 {
        self.starts
    }

    /// Every client that may reclaim its state, and the files whose state it may not.
    #[must_use]
    pub fn recovered(&self) -> Recovered {
        self.writer().known.clone()
    }

    /// Whether nothing can be stored at present, until [`Store::repair`] succeeds.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Waits until all that the engine recorded before `mark` is on stable storage, or puts it
    /// there, together with whatever else waits.
    ///
    /// # Errors
    /// [`StoreError::Write`], [`StoreError::Broken`]: nothing may be promised.
    pub fn settle(&self, engine: &Engine, mark: Mark) -> Result<(), StoreError> {
        let mut writer = self.writer();
        if engine.is_stored(mark) {
            return Ok(());
        }
        let (taken, records) = writer.take(engine);
        let database = writer.database.as_ref().ok_or_else(|| self.broken())?;
        if let Err(source) = whole(|| apply(database, &records)) {
            self.broken.store(true, Ordering::Release);
            close(writer.database.take());
            return Err(self.unwritten(source));
        }
        engine.stored(taken);
        Ok(())
    }

    /// Stores all that is known in a new file in the place of the one that could not be written, if
    /// there is such: whether there was.
    ///
    /// # Errors
    /// [`StoreError::Write`]: it cannot be written yet.
    pub fn repair(&self, engine: &Engine) -> Result<bool, StoreError> {
        let mut writer = self.writer();
        if writer.database.is_some() {
            return Ok(false);
        }
        let (taken, _) = writer.take(engine);
        let made = rewrite(&self.path, self.starts, &writer.known);
        writer.database = Some(made.map_err(|source| self.unwritten(source))?);
        self.broken.store(false, Ordering::Release);
        engine.stored(taken);
        Ok(true)
    }

    fn broken(&self) -> StoreError {
        StoreError::Broken { path: self.path.clone() }
    }

    fn unwritten(&self, source: redb::Error) -> StoreError {
        StoreError::Write { path: self.path.clone(), source }
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// Takes from the engine what is to be stored.
    fn take(&mut self, engine: &Engine) -> (Mark, Vec<Record>) {
        let mut records = Vec::new();
        let taken = engine.poll_records(&mut records);
        records.iter().cloned().for_each(|record| self.known.apply(record));
        (taken, records)
    }
}

/// A database that has failed may panic when it is closed, too.
fn close(database: Option<Database>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
}

/// Makes a file of all that is known and puts it in the place of the old one. The old one is left
/// alone until the new one is on stable storage.
fn rewrite(path: &Path, starts: u32, known: &Recovered) -> Result<Database, redb::Error> {
    let new = path.with_extension("new");
    // An earlier attempt may have left it.
    let _ = fs::remove_file(&new);
    let made = whole(|| {
        let database = database(private(&new)?)?;
        format(&database)?;
        set_starts(&database, |_| starts)?;
        apply(&database, &known.records().collect::<Vec<_>>())?;
        Ok(database)
    });
    let placed = made.and_then(|database| {
        fs::rename(&new, path)?;
        name_is_stable(path)?;
        Ok(database)
    });
    if placed.is_err() {
        // Others may need the space.
        let _ = fs::remove_file(&new);
    }
    placed
}

/// The file, made if it is not there, for nobody else to look into whatever the umask: it tells who
/// the clients are.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Opens a database, and looks at all of it: what is damaged would be found out, or taken for what
/// was stored, when it is too late.
fn database(file: File) -> Result<Database, redb::Error> {
    let mut database = Database::builder().create_with_backend(FileBackend::new(file)?)?;
    // That it has repaired something is as good.
    let _ = database.check_integrity()?;
    Ok(database)
}

/// What is done with a file that may be damaged: there redb panics, now and then.
fn whole<T>(act: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    let damaged = |_| Err(redb::Error::Corrupted("it is damaged".into()));
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(damaged)
}

/// A store whose name a power cut takes away remembers nobody.
fn name_is_stable(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The format of a database; a new one gets ours, and its tables.
fn format(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let found = meta.get("format")?.map(|format| format.value());
    if found.is_none() {
        meta.insert("format", FORMAT)?;
        transaction.open_table(CLIENTS)?;
        transaction.open_multimap_table(REVOKED)?;
    }
    drop(meta);
    transaction.commit()?;
    Ok(found.unwrap_or(FORMAT))
}

/// Turns a store of format 1 into one of ours. Which files its clients lost cannot be told without
/// the exports of that time, so that a client that lost any may reclaim none.
fn upgrade(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut clients = transaction.open_table(CLIENTS)?;
        for entry in transaction.open_table(NAMELESS)?.iter()? {
            clients.insert(entry?.0.value(), &*key::of_identity(None))?;
        }
        let revoked = transaction.open_multimap_table(REVOKED)?;
        for entry in revoked.iter()? {
            clients.remove(entry?.0.value())?;
        }
        transaction.open_table(META)?.insert("format", FORMAT)?;
    }
    transaction.delete_table(NAMELESS)?;
    transaction.delete_multimap_table(REVOKED)?;
    transaction.open_multimap_table(REVOKED)?;
    transaction.commit()?;
    Ok(FORMAT)
}

fn count_start(database: &Database) -> Result<u32, redb::Error> {
    set_starts(database, |before| before.wrapping_add(1))
}

fn set_starts(database: &Database, starts: impl FnOnce(u32) -> u32) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let before = meta.get("starts")?.map_or(0, |starts| starts.value());
    let starts = starts(before);
    meta.insert("starts", starts)?;
    drop(meta);
    transaction.commit()?;
    Ok(starts)
}

fn recovered(database: &Database) -> Result<Recovered, redb::Error> {
    let transaction = database.begin_read()?;
    let clients = transaction.open_table(CLIENTS)?;
    let revoked = transaction.open_multimap_table(REVOKED)?;
    let mut recovered = Recovered::new();
    for entry in clients.iter()? {
        let (key, identity) = entry?;
        let Some(client) = key::client(key.value()) else { continue };
        let Some(identity) = key::identity(identity.value()) else { continue };
        recovered.apply(Record::Client(client.clone(), identity));
        for file in revoked.get(key.value())? {
            if let Some(file) = key::file(file?.value()) {
                recovered.apply(Record::Revoked(client.clone(), file));
            }
        }
    }
    Ok(recovered)
}

fn apply(database: &Database, records: &[Record]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut clients = transaction.open_table(CLIENTS)?;
        let mut revoked = transaction.open_multimap_table(REVOKED)?;
        for record in records {
            apply_one(&mut clients, &mut revoked, record)?;
        }
    }
    Ok(transaction.commit()?)
}

fn apply_one(
    clients: &mut Table<'_, &[u8], &[u8]>,
    revoked: &mut MultimapTable<'_, &[u8], &[u8]>,
    record: &Record,
) -> Result<(), redb::Error> {
    match record {
        Record::Client(client, identity) => {
            let key = key::of_client(client);
            clients.insert(&*key, &*key::of_identity(*identity))?;
            if client.desk == Desk::ExchangeId {
                revoked.remove_all(&*key)?;
            }
        }
        Record::Forget(client) => {
            let key = key::of_client(client);
            clients.remove(&*key)?;
            revoked.remove_all(&*key)?;
        }
        Record::Revoked(client, file) => {
            let key = key::of_client(client);
            if clients.get(&*key)?.is_some() {
                revoked.insert(&*key, &*key::of_file(file))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
