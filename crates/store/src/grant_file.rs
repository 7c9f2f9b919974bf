//! The file of credentials and revocations. Its layout is in docs/formats.md.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use comity_grants::{
    Creation, Medium, MediumError, Moment, ObjectId, Record, Recovered, RememberedRevocation,
    Revoked, Revoker,
};
use comity_keynote::AssertionDigest;
use comity_keys::PublicKey;
use comity_vfs::{AsServer, Handle};
use redb::backends::InMemoryBackend;
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend, Table,
    TableDefinition, TableError,
};

use crate::database_file::{close, database, name_is_stable, private, replace, whole};
use crate::error::StoreError;

const FORMAT: u32 = 1;
const META: TableDefinition<'_, &str, u32> = TableDefinition::new("meta");
const MOMENTS: TableDefinition<'_, &str, u64> = TableDefinition::new("moments");
const HELD: TableDefinition<'_, &[u8], &str> = TableDefinition::new("held");
const REVOKED: TableDefinition<'_, &[u8], u64> = TableDefinition::new("revoked");
const REVOKERS: TableDefinition<'_, &[u8], &str> = TableDefinition::new("revokers");
const MADE: TableDefinition<'_, &[u8], (u64, &str)> = TableDefinition::new("made");

/// The key in [`MOMENTS`] of the latest time that the clock is known to have shown.
const SEEN: &str = "seen";

/// Longest file that is copied to memory to be read: some 100,000 credentials.
const LOOK_BYTES_MAX: u64 = 64 << 20;

/// Bytes of a digest.
const DIGEST_BYTES: usize = 32;

/// A file of this machine that keeps credentials and revocations, open in one process.
pub struct GrantFile {
    path: PathBuf,
    /// `None` after a failed write, because the content of the disk is unknown then.
    database: Mutex<Option<Database>>,
}

impl GrantFile {
    /// Opens the file `path`, or makes it; returns what earlier servers stored in it.
    ///
    /// # Errors
    /// [`StoreError::Read`], [`StoreError::Format`].
    pub fn open(server: &AsServer, path: &Path) -> Result<(Self, Recovered), StoreError> {
        let name = || path.display().to_string();
        let read = |source: redb::Error| StoreError::Read { name: name(), source: source.into() };
        let file = private(server, path).map_err(|error| read(error.into()))?;
        let opened = whole(|| {
            let database = database(file)?;
            let found = format(&database)?;
            Ok((database, found))
        });
        let (database, found) = opened.map_err(read)?;
        name_is_stable(server, path).map_err(|error| read(error.into()))?;
        if found != FORMAT {
            return Err(StoreError::Format { name: name(), found, expected: FORMAT });
        }
        let known = whole(|| recovered(&database)).map_err(read)?;
        let file = Self { path: path.to_owned(), database: Mutex::new(Some(database)) };
        Ok((file, known))
    }

    /// Reads the file `path` of a server that is not running. The file is copied to memory, because
    /// it may have to be repaired, and is not changed.
    ///
    /// # Errors
    /// If there is no such file, or it is damaged or longer than 64 MiB.
    pub fn look(_: &AsServer, path: &Path) -> Result<Recovered, MediumError> {
        let looked = whole(|| {
            let mut bytes = Vec::new();
            fs::File::open(path)?.take(LOOK_BYTES_MAX + 1).read_to_end(&mut bytes)?;
            if bytes.len() as u64 > LOOK_BYTES_MAX {
                return Err(io::Error::other("it is too long to be copied to memory").into());
            }
            let copy = InMemoryBackend::new();
            copy.set_len(bytes.len() as u64)?;
            copy.write(0, &bytes)?;
            recovered(&Database::builder().create_with_backend(copy)?)
        });
        Ok(looked?)
    }

    fn database(&self) -> MutexGuard<'_, Option<Database>> {
        self.database.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Medium for GrantFile {
    fn store(&self, _: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let mut place = self.database();
        let database = place.as_ref().ok_or("it could not be written before")?;
        let applied = whole(|| apply(database, records));
        if applied.is_err() {
            close(place.take());
        }
        Ok(applied?)
    }

    fn replace(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        let mut place = self.database();
        close(place.take());
        *place = Some(rewrite(server, &self.path, records)?);
        Ok(())
    }
}

/// Makes a file of these records and replaces the old one, which is left alone until the new one is
/// on stable storage.
fn rewrite(server: &AsServer, path: &Path, records: &[Record]) -> Result<Database, redb::Error> {
    replace(server, path, |database| {
        format(database)?;
        apply(database, records)
    })
}

/// Returns the format of a database; a new one gets the current format, and its tables.
fn format(database: &Database) -> Result<u32, redb::Error> {
    let transaction = database.begin_write()?;
    let mut meta = transaction.open_table(META)?;
    let found = meta.get("format")?.map(|format| format.value());
    if found.is_none() {
        meta.insert("format", FORMAT)?;
        transaction.open_table(MOMENTS)?;
        transaction.open_table(HELD)?;
        transaction.open_table(REVOKED)?;
    }
    drop(meta);
    transaction.commit()?;
    Ok(found.unwrap_or(FORMAT))
}

fn recovered(database: &Database) -> Result<Recovered, redb::Error> {
    let transaction = database.begin_read()?;
    let mut recovered = Recovered::default();
    for entry in transaction.open_table(HELD)?.iter()? {
        let (key, text) = entry?;
        if let Some((holder, _)) = read_held(key.value()) {
            recovered.held.push((holder, text.value().to_owned()));
        }
    }
    recovered.revoked = revoked(&transaction)?;
    let seen = transaction.open_table(MOMENTS)?.get(SEEN)?.map(|seen| seen.value());
    recovered.seen = Moment(seen.unwrap_or_default());
    recovered.made = made(&transaction)?;
    Ok(recovered)
}

/// Returns the revocations. One without a revoker, as in a file of an older server, counts as one
/// by an administrator.
fn revoked(transaction: &ReadTransaction) -> Result<Vec<RememberedRevocation>, redb::Error> {
    let revokers = match transaction.open_table(REVOKERS) {
        Err(TableError::TableDoesNotExist(_)) => None,
        table => Some(table?),
    };
    let mut revoked = Vec::new();
    for entry in transaction.open_table(REVOKED)?.iter()? {
        let (key, until) = entry?;
        let Some(what) = read_revoked(key.value()) else { continue };
        let by = revokers.as_ref().map(|table| table.get(key.value())).transpose()?.flatten();
        let by = by.and_then(|by| by.value().parse().ok());
        let by = by.map_or(Revoker::Administrator, Revoker::Key);
        revoked.push(RememberedRevocation { what, until: Moment(until.value()), by });
    }
    Ok(revoked)
}

/// Returns the creators of objects; a file of an older server has none.
fn made(transaction: &ReadTransaction) -> Result<Vec<Creation>, redb::Error> {
    let table = match transaction.open_table(MADE) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
        table => table?,
    };
    let mut made = Vec::new();
    for entry in table.iter()? {
        let (object, creation) = entry?;
        let (number, creator) = creation.value();
        let (object, creator) = (Handle::new(object.value()), creator.parse());
        if let (Ok(object), Ok(creator)) = (object, creator) {
            made.push(Creation { object: ObjectId(object), creator, number });
        }
    }
    Ok(made)
}

fn apply(database: &Database, records: &[Record]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut held = transaction.open_table(HELD)?;
        let mut revoked = transaction.open_table(REVOKED)?;
        let mut moments = transaction.open_table(MOMENTS)?;
        let mut made = transaction.open_table(MADE)?;
        let mut revokers = transaction.open_table(REVOKERS)?;
        for record in records {
            let revoked = (&mut revoked, &mut revokers);
            apply_one((&mut held, revoked, &mut moments, &mut made), record)?;
        }
    }
    Ok(transaction.commit()?)
}

type Tables<'a, 't> = (
    &'a mut Table<'t, &'static [u8], &'static str>,
    (&'a mut Table<'t, &'static [u8], u64>, &'a mut Table<'t, &'static [u8], &'static str>),
    &'a mut Table<'t, &'static str, u64>,
    &'a mut Table<'t, &'static [u8], (u64, &'static str)>,
);

fn apply_one(
    (held, (revoked, revokers), moments, made): Tables<'_, '_>,
    record: &Record,
) -> Result<(), redb::Error> {
    match record {
        Record::Held { holder, digest, text } => {
            held.insert(&*held_key(holder, digest), text.as_str())?;
        }
        Record::Dropped { holder, digest } => {
            held.remove(&*held_key(holder, digest))?;
        }
        Record::Revoked(RememberedRevocation { what, until, by }) => {
            let key = revoked_key(what);
            revoked.insert(&*key, until.0)?;
            if let Revoker::Key(by) = by {
                revokers.insert(&*key, by.to_string().as_str())?;
            }
        }
        Record::Forgotten(what) => {
            let key = revoked_key(what);
            revoked.remove(&*key)?;
            revokers.remove(&*key)?;
        }
        Record::Made(Creation { object, creator, number }) => {
            made.insert(object.0.bytes(), (*number, creator.to_string().as_str()))?;
        }
        Record::Unmade(object) => {
            made.remove(object.0.bytes())?;
        }
        Record::Seen(moment) => {
            moments.insert(SEEN, moment.0)?;
        }
    }
    Ok(())
}

/// Returns the key of a held credential: the text of its holder's key, a zero and the digest.
fn held_key(holder: &PublicKey, digest: &AssertionDigest) -> Vec<u8> {
    let mut bytes = holder.to_string().into_bytes();
    bytes.push(0);
    bytes.extend(digest.as_bytes());
    bytes
}

fn read_held(bytes: &[u8]) -> Option<(PublicKey, AssertionDigest)> {
    let at = bytes.len().checked_sub(DIGEST_BYTES + 1)?;
    let (holder, digest) = bytes.split_at_checked(at)?;
    let (0, digest) = digest.split_first()? else { return None };
    let holder = std::str::from_utf8(holder).ok()?.parse().ok()?;
    Some((holder, AssertionDigest::from_bytes(digest.try_into().ok()?)))
}

/// Returns the key of a revocation: `c` and a digest, or `k`, the text of a key, a zero, and the
/// text of the account's key or nothing.
fn revoked_key(what: &Revoked) -> Vec<u8> {
    match what {
        Revoked::Credential(digest) => [b"c", &digest.as_bytes()[..]].concat(),
        Revoked::Key { key, grantor } => {
            let grantor = grantor.map(|grantor| grantor.to_string()).unwrap_or_default();
            format!("k{key}\0{grantor}").into_bytes()
        }
    }
}

fn read_revoked(bytes: &[u8]) -> Option<Revoked> {
    match bytes.split_first()? {
        (b'c', digest) => {
            Some(Revoked::Credential(AssertionDigest::from_bytes(digest.try_into().ok()?)))
        }
        (b'k', keys) => {
            let (key, grantor) = std::str::from_utf8(keys).ok()?.split_once('\0')?;
            let grantor = match grantor {
                "" => None,
                grantor => Some(grantor.parse().ok()?),
            };
            Some(Revoked::Key { key: key.parse().ok()?, grantor })
        }
        _ => None,
    }
}
