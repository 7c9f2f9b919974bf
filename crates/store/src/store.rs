use std::fs::{File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_state::{Desk, Engine, Mark, Record, Recovered};
use redb::backends::FileBackend;
use redb::{
    Database, MultimapTable, MultimapTableDefinition, ReadableDatabase, ReadableTable, Table,
    TableDefinition,
};

use crate::key;

const FORMAT: u32 = 2;
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");
const CLIENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
/// The clients of format 1, without identities.
const NAMELESS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("clients");
const REVOKED: MultimapTableDefinition<'_, &[u8], &[u8]> = MultimapTableDefinition::new("revoked");

/// The embedded store: one file, one process.
pub struct Store {
    path: PathBuf,
    starts: u32,
    writer: Mutex<Writer>,
}

struct Writer {
    database: Database,
    /// Taken from the engine and not yet stored.
    records: Vec<Record>,
    /// Nothing can be promised any more: a barrier has failed, and what stands on the medium is not
    /// known (it is not tried again, for a second fsync may say that all is well when it is not).
    broken: bool,
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
    /// It cannot be written; nothing more will be.
    #[error("the state of clients in {} cannot be written: {source}; start the server again when \
        it can", path.display())]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        source: redb::Error,
    },
    /// It could not be written before.
    #[error("the state of clients in {} could not be written before; start the server again when \
        it can", path.display())]
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
            let found = format(&database)?;
            Ok((database, found))
        });
        let (database, found) = opened.map_err(read)?;
        name_is_stable(path).map_err(|error| read(redb::Error::Io(error)))?;
        if found != FORMAT {
            return Err(StoreError::Format { path: path.to_owned(), found });
        }
        let starts = count_start(&database).map_err(read)?;
        let writer = Mutex::new(Writer { database, records: Vec::new(), broken: false });
        Ok(Self { path: path.to_owned(), starts, writer })
    }

    /// How often it was opened, this time among them.
    #[must_use]
    pub const fn starts(&self) -> u32 {
        self.starts
    }

    /// Every client that may reclaim its state, and the files whose state it may not.
    ///
    /// # Errors
    /// [`StoreError::Read`].
    pub fn recovered(&self) -> Result<Recovered, StoreError> {
        let read = |source| StoreError::Read { path: self.path.clone(), source };
        let writer = self.writer();
        whole(|| recovered(&writer.database)).map_err(read)
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
        let taken = engine.poll_records(&mut writer.records);
        self.write(&mut writer)?;
        engine.stored(taken);
        Ok(())
    }

    fn write(&self, writer: &mut Writer) -> Result<(), StoreError> {
        if writer.broken {
            return Err(StoreError::Broken { path: self.path.clone() });
        }
        let records = std::mem::take(&mut writer.records);
        whole(|| apply(&writer.database, &records)).map_err(|source| {
            writer.broken = true;
            StoreError::Write { path: self.path.clone(), source }
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// The format of a database; a new one gets ours, and its tables. One of format 1 becomes one of
/// ours.
fn format(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let found = meta.get("format")?.map(|format| format.value());
    if matches!(found, None | Some(1)) {
        meta.insert("format", FORMAT)?;
        let mut clients = transaction.open_table(CLIENTS)?;
        for entry in transaction.open_table(NAMELESS)?.iter()? {
            clients.insert(entry?.0.value(), key::NO_IDENTITY)?;
        }
        drop(clients);
        transaction.delete_table(NAMELESS)?;
        transaction.open_multimap_table(REVOKED)?;
        drop(meta);
        transaction.commit()?;
        return Ok(FORMAT);
    }
    Ok(found.unwrap_or(FORMAT))
}

fn count_start(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let before = meta.get("starts")?.map_or(0, |starts| starts.value());
    let starts = before.wrapping_add(1);
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
        match key::identity(identity.value()) {
            Some(Some(identity)) => recovered.apply(Record::Client(client.clone(), identity)),
            Some(None) => recovered.apply_nameless(client.clone()),
            None => continue,
        }
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
            clients.insert(&*key, &key::of_identity(identity)[..])?;
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
