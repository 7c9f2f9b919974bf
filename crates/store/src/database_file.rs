//! A file that holds a database, private to its owner.

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use comity_vfs::AsServer;
use redb::Database;
use redb::backends::FileBackend;

/// Closes a database. A database that has failed may panic when it is closed.
pub(crate) fn close(database: Option<Database>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(database)));
}

/// Opens the file, or makes it. Only its owner can read it, whatever the umask is, because it names
/// clients and their rights.
pub(crate) fn private(_: &AsServer, path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Opens a database and checks all of it, so that damage is found now and not when a client needs
/// what was stored.
pub(crate) fn database(file: File) -> Result<Database, redb::Error> {
    let mut database = Database::builder().create_with_backend(FileBackend::new(file)?)?;
    // It does not matter whether the check repaired the file.
    let _ = database.check_integrity()?;
    Ok(database)
}

/// Calls `act` on a file that may be damaged, and turns a panic into an error: redb sometimes
/// panics on such files.
pub(crate) fn whole<T>(act: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, redb::Error> {
    let damaged = |_| Err(redb::Error::Corrupted("it is damaged".into()));
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(damaged)
}

/// Makes a database in the file of this path, in place of an old one, and fills it. The old file is
/// left alone until the new one is on stable storage.
pub(crate) fn replace(
    server: &AsServer,
    path: &Path,
    fill: impl FnOnce(&Database) -> Result<(), redb::Error>,
) -> Result<Database, redb::Error> {
    let new = path.with_extension("new");
    // An earlier attempt may have left the file.
    let _ = fs::remove_file(&new);
    let made = whole(|| {
        let database = database(private(server, &new)?)?;
        fill(&database)?;
        Ok(database)
    });
    let placed = made.and_then(|database| {
        fs::rename(&new, path)?;
        name_is_stable(server, path)?;
        Ok(database)
    });
    if placed.is_err() {
        // Frees the space, which others may need.
        let _ = fs::remove_file(&new);
    }
    placed
}

/// Puts the name of the file on stable storage. Otherwise a power failure could lose the whole
/// store.
pub(crate) fn name_is_stable(_: &AsServer, path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
