//! The medium that is a file of this machine (redb). Its layout is in docs/formats.md.

use std::path::{Path, PathBuf};

use comity_state::{ClientProtocol, Record, Recovered};
use comity_vfs::AsServer;
use redb::{
    Database, MultimapTable, MultimapTableDefinition, ReadableDatabase, ReadableMultimapTable,
    ReadableTable, Table, TableDefinition,
};

use crate::database_file::{close, database, name_is_stable, private, replace, whole};
use crate::error::StoreError;
use crate::key;
use crate::medium::{Medium, MediumError, OpenMedium};

const FORMAT: u32 = 2;
/// The format in which files were named by the number of their export, and clients had no
/// identities.
const FORMAT_BY_EXPORT: u32 = 1;
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");
const CLIENTS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("identities");
/// The clients of format 1, without identities.
const NAMELESS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("clients");
/// Files whose sizes may be unknown. A store of an earlier version has no such table.
const SIZES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("sizes");
const REVOKED: MultimapTableDefinition<'_, &[u8], &[u8]> = MultimapTableDefinition::new("revoked");

/// The medium that is one file of this machine, open in one process.
struct RedbFile {
    path: PathBuf,
    starts: u32,
    /// `None` after a write or a barrier has failed. The content of the disk is unknown then, and a
    /// second fsync of the file may succeed although pages of the first one are lost.
    database: Option<Database>,
}

/// Opens the file `path`, or makes it.
///
/// # Errors
/// [`StoreError::Read`], [`StoreError::Format`].
pub(crate) fn open(server: &AsServer, path: &Path) -> Result<OpenMedium, StoreError> {
    let name = || path.display().to_string();
    let read = |source: redb::Error| StoreError::Read { name: name(), source: source.into() };
    let file = private(server, path).map_err(|error| read(error.into()))?;
    let opened = whole(|| {
        let database = database(file)?;
        let found = match format(&database)? {
            FORMAT_BY_EXPORT => upgrade(&database)?,
            found => found,
        };
        Ok((database, found))
    });
    let (database, found) = opened.map_err(read)?;
    name_is_stable(server, path).map_err(|error| read(error.into()))?;
    if found != FORMAT {
        return Err(StoreError::Format { name: name(), found, expected: FORMAT });
    }
    let starts = count_start(&database).map_err(read)?;
    let known = whole(|| recovered(&database)).map_err(read)?;
    let file = RedbFile { path: path.to_owned(), starts, database: Some(database) };
    Ok(OpenMedium { medium: Box::new(file), starts, known })
}

impl Medium for RedbFile {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn apply(&mut self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let database = self.database.as_ref().ok_or("it could not be written before")?;
        let applied = whole(|| apply(database, records));
        if applied.is_err() {
            close(self.database.take());
        }
        Ok(applied?)
    }

    fn replace(&mut self, server: &AsServer, known: &Recovered) -> Result<(), MediumError> {
        close(self.database.take());
        self.database = Some(rewrite(server, &self.path, (self.starts, known))?);
        Ok(())
    }
}

/// Makes a file of all that is known and replaces the old one, which is left alone until the new
/// one is on stable storage.
fn rewrite(
    server: &AsServer,
    path: &Path,
    (starts, known): (u32, &Recovered),
) -> Result<Database, redb::Error> {
    replace(server, path, |database| {
        format(database)?;
        set_starts(database, |_| starts)?;
        apply(database, &known.records().collect::<Vec<_>>())
    })
}

/// Returns the format of a database; a new one gets the current format, and its tables.
fn format(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let found = meta.get("format")?.map(|format| format.value());
    if found.is_none() {
        meta.insert("format", FORMAT)?;
        transaction.open_table(CLIENTS)?;
        transaction.open_multimap_table(REVOKED)?;
    }
    transaction.open_table(SIZES)?;
    drop(meta);
    transaction.commit()?;
    Ok(found.unwrap_or(FORMAT))
}

/// Converts a store of format 1 to the current one. The files whose state a client lost cannot be
/// identified without the exports of that time, so a client that lost any may reclaim nothing.
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
    for entry in transaction.open_table(SIZES)?.iter()? {
        let (key, export) = entry?;
        let file = key::file_in(key.value(), export.value());
        file.into_iter().for_each(|file| recovered.apply(Record::SizeOpen(file)));
    }
    for entry in clients.iter()? {
        let (key, identity) = entry?;
        let Some(client) = key::client(key.value()) else { continue };
        let Some(identity) = key::identity(identity.value(), client.channel) else { continue };
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
        let mut sizes = transaction.open_table(SIZES)?;
        for record in records {
            apply_one((&mut clients, &mut revoked, &mut sizes), record)?;
        }
    }
    Ok(transaction.commit()?)
}

/// The tables of clients, of the files whose state they lost, and of files whose sizes may be
/// unknown.
type StoreTables<'w, 't> = (
    &'w mut Table<'t, &'static [u8], &'static [u8]>,
    &'w mut MultimapTable<'t, &'static [u8], &'static [u8]>,
    &'w mut Table<'t, &'static [u8], &'static [u8]>,
);

fn apply_one(
    (clients, revoked, sizes): StoreTables<'_, '_>,
    record: &Record,
) -> Result<(), redb::Error> {
    match record {
        Record::Client(client, identity) => {
            let key = key::of_client(client);
            clients.insert(&*key, &*key::of_identity(*identity))?;
            if client.protocol == ClientProtocol::ExchangeId {
                revoked.remove_all(&*key)?;
            }
        }
        Record::Arrived(client, identity) => {
            clients.insert(&*key::of_client(client), &*key::of_identity(*identity))?;
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
        Record::Unrevoked(client, file) => {
            revoked.remove(&*key::of_client(client), &*key::of_file(file))?;
        }
        Record::RevocationsKnown(client) => {
            revoked.remove_all(&*key::of_client(client))?;
        }
        Record::SizeOpen(file) => {
            sizes.insert(&*key::of_file(file), &key::of_export(file)[..])?;
        }
        Record::SizeKnown(file) => {
            sizes.remove(&*key::of_file(file))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
