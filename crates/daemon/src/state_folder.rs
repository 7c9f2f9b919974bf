//! The state folder: its lock, the key of the handles, the key that signs for creators, the TLS
//! key, and the token of the web page.
//!
//! `handle.key` holds 16 random bytes. Clients keep handles over a restart of the server, so the
//! key must survive it. Anybody who knows it can forge handles, so it must not be readable by
//! others. `tls.key` and `tls.crt` are made if no other files are configured; they are kept,
//! because clients may trust the certificate.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use comity_grants::ServerKey;
use comity_keys::{Algorithm, PrivateKey};
use comity_tls::self_made;
use comity_vfs::AsServer;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::web_token::Token;

const KEY_BYTES: usize = 16;
const KEY: &str = "handle.key";
const SERVER_ID: &str = "server.id";
const GRANT_KEY: &str = "grants.key";
pub(crate) const WEB_TOKEN: &str = "web.token";
pub(crate) const TLS_KEY: &str = "tls.key";
pub(crate) const TLS_CERTIFICATE: &str = "tls.crt";
const LOCK: &str = "lock";
const SOCKET: &str = "control.sock";

/// Longest path of a UNIX socket in bytes (unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// A state folder that this process has locked, until this is dropped.
#[derive(Debug)]
pub(crate) struct StateFolder {
    folder: PathBuf,
    _lock: File,
}

impl StateFolder {
    /// Locks a state folder; creates it if it does not exist.
    ///
    /// # Errors
    /// Another server uses it, it cannot be created or written, or others could replace the keys in
    /// it. The error says what to do.
    pub(crate) fn take(folder: &Path) -> Result<Self> {
        let server = AsServer::here()?;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| advice("make", folder))?;
        check_private(&server, folder)?;
        let path = folder.join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut lock = options.open(&path).with_context(|| advice("write to", folder))?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => bail!("{}", taken(folder, &mut lock)),
            Err(error) => return Err(error).with_context(|| format!("lock {}", path.display())),
        }
        lock.set_len(0)?;
        write!(lock, "{}", std::process::id())?;
        Ok(Self { folder: folder.to_owned(), _lock: lock })
    }

    /// Returns the key of the handles; makes one if there is none.
    ///
    /// # Errors
    /// The file cannot be read or made, has a wrong length, or is readable by others.
    pub(crate) fn handle_key(&self) -> Result<[u8; KEY_BYTES]> {
        let (server, path) = (AsServer::here()?, self.folder.join(KEY));
        match File::open(&path) {
            Ok(file) => read_key(&server, (&file, &path)),
            Err(error) if error.kind() == ErrorKind::NotFound => make_key(&server, &self.folder),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Returns the key that signs credentials for creators; makes one if there is none.
    ///
    /// # Errors
    /// The file cannot be read or made, is not a private key, or is readable by others.
    pub(crate) fn grant_key(&self) -> Result<ServerKey> {
        const OTHERWISE: &str = "remove it; credentials that it signed give nothing then";
        let (server, path) = (AsServer::here()?, self.folder.join(GRANT_KEY));
        let shown = path.display();
        let key = match fs::read_to_string(&path) {
            Ok(text) => {
                check_secret(&server, &path, OTHERWISE)?;
                let advice = || format!("{shown} holds no private key: restore it, or {OTHERWISE}");
                PrivateKey::from_text(&text, None).with_context(advice)?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = PrivateKey::generate(Algorithm::Ed25519)?;
                keep(&server, (&self.folder, GRANT_KEY), made.to_pem()?.as_bytes())?;
                made
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        Ok(ServerKey::new(key))
    }

    /// Returns the bytes that tell this server from others with the same key of handles; makes them
    /// if there are none.
    ///
    /// # Errors
    /// The file cannot be read or made, or has a wrong length.
    pub(crate) fn server_id(&self) -> Result<[u8; 8]> {
        let (server, path) = (AsServer::here()?, self.folder.join(SERVER_ID));
        match fs::read(&path) {
            Ok(bytes) => bytes.try_into().ok().with_context(|| {
                format!("{} should have 8 bytes: restore it, or remove it", path.display())
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let made = random()?;
                keep(&server, (&self.folder, SERVER_ID), &made)?;
                Ok(made)
            }
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Makes a new token for the web page at each start: while no server ran, another program may
    /// have used the port and received the old one.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn web_token(&self) -> Result<Token> {
        let made = Token::new(random()?);
        let line = format!("{}\n", made.as_str());
        keep(&AsServer::here()?, (&self.folder, WEB_TOKEN), line.as_bytes())?;
        Ok(made)
    }

    /// Returns the files of the certificate and private key for TLS. Missing files are made, for a
    /// server with these names; if only the certificate is missing, it is made for the existing
    /// key.
    ///
    /// # Errors
    /// A file cannot be read or made, or the key is readable by others.
    pub(crate) fn tls_key(&self, names: &[String]) -> Result<(PathBuf, PathBuf)> {
        let server = AsServer::here()?;
        let certificate = self.folder.join(TLS_CERTIFICATE);
        let key = self.folder.join(TLS_KEY);
        let old = match fs::read_to_string(&key) {
            Ok(old) => Some(old),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", key.display()));
            }
        };
        if old.is_some() {
            let otherwise = "remove it; clients that trust it then have to be told of the new";
            check_secret(&server, &key, otherwise)?;
        }
        if old.is_none() || !certificate.exists() {
            let made = self_made(names, old.as_deref())?;
            keep(&server, (&self.folder, TLS_KEY), made.key.as_bytes())?;
            keep(&server, (&self.folder, TLS_CERTIFICATE), made.certificate.as_bytes())?;
        }
        Ok((certificate, key))
    }
}

/// Refuses a secret that others may read. `otherwise` describes an alternative to chmod.
pub(crate) fn check_secret(_: &AsServer, path: &Path, otherwise: &str) -> Result<()> {
    let (shown, mode) = (path.display(), fs::metadata(path)?.mode() & 0o7777);
    if mode & 0o077 != 0 {
        bail!(
            "{shown} has mode {mode:04o}, so others may know the key: chmod 600 it, or {otherwise}"
        );
    }
    Ok(())
}

/// Returns the path of the control socket in a state folder.
///
/// # Errors
/// The path is too long for a socket.
pub fn control_socket(folder: &Path) -> Result<PathBuf> {
    let path = folder.join(SOCKET);
    let length = path.as_os_str().len();
    if length > SOCKET_PATH_BYTES_MAX {
        bail!(
            "the path of the control socket, {}, has {length} bytes and may have \
             {SOCKET_PATH_BYTES_MAX}: choose a shorter --state-dir",
            path.display()
        );
    }
    Ok(path)
}

/// Returns the default state folder: root's, or one in the user's home.
///
/// # Errors
/// The user has no home.
pub fn default_state_folder(is_root: bool) -> Result<PathBuf> {
    if is_root {
        return Ok("/var/lib/comity".into());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| is_absolute(value));
    let home = || variable("HOME").map(|home| Path::new(&home).join(".local/state"));
    variable("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(home)
        .map(|folder| folder.join("comity"))
        .context("there is no place for the server's state: set HOME, or give --state-dir")
}

fn is_absolute(path: &OsStr) -> bool {
    Path::new(path).is_absolute()
}

fn advice(verb: &str, folder: &Path) -> String {
    format!(
        "cannot {verb} the state folder {}: make it writable for this user, or choose another \
         with --state-dir",
        folder.display()
    )
}

/// Refuses a folder that others may change: they could put a key there that they know.
pub(crate) fn check_private(_: &AsServer, folder: &Path) -> Result<()> {
    let (shown, found) = (folder.display(), fs::metadata(folder)?);
    let (mode, owner) = (found.mode() & 0o7777, found.uid());
    if mode & 0o022 != 0 {
        bail!(
            "the state folder {shown} has mode {mode:04o}, so others may replace the key in it: \
             chmod go-w it, or choose another with --state-dir"
        );
    }
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        bail!(
            "the state folder {shown} belongs to user {owner}, who may replace the key in it: \
             chown it, or choose another with --state-dir"
        );
    }
    Ok(())
}

fn taken(folder: &Path, lock: &mut File) -> String {
    let mut holder = String::new();
    let holder = match lock.read_to_string(&mut holder) {
        Ok(1..) => format!(" (process {})", holder.trim()),
        _ => String::new(),
    };
    format!(
        "another server{holder} uses the state folder {}: stop it, or choose another folder with \
         --state-dir",
        folder.display()
    )
}

fn read_key(server: &AsServer, (mut file, path): (&File, &Path)) -> Result<[u8; KEY_BYTES]> {
    let shown = path.display();
    check_secret(server, path, "remove it; removing it makes all handles of clients stale")?;
    let mut key = Vec::new();
    file.read_to_end(&mut key).with_context(|| format!("cannot read {shown}"))?;
    let length = key.len();
    key.try_into().ok().with_context(|| {
        format!(
            "{shown} has {length} bytes and should have {KEY_BYTES}: restore it, or remove it; \
             removing it makes all handles of clients stale"
        )
    })
}

fn make_key(server: &AsServer, folder: &Path) -> Result<[u8; KEY_BYTES]> {
    let key = random()?;
    keep(server, (folder, KEY), &key)?;
    Ok(key)
}

pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if getrandom(&mut bytes, GetRandomFlags::empty()).context("no random bytes")? != BYTES {
        bail!("the system gave too few random bytes");
    }
    Ok(bytes)
}

/// Writes a file that others cannot read: first a complete copy on stable storage, which then gets
/// its name.
pub(crate) fn keep(_: &AsServer, (folder, name): (&Path, &str), content: &[u8]) -> Result<()> {
    let draft = folder.join(format!("{name}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&draft).with_context(|| advice("write to", folder))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&draft, folder.join(name))?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_stays_the_same_and_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateFolder::take(folder.path()).unwrap().handle_key().unwrap();
        let state = StateFolder::take(folder.path()).unwrap();
        assert_eq!(state.handle_key().unwrap(), first);
        let mode = fs::metadata(folder.path().join(KEY)).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o600);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(StateFolder::take(other.path()).unwrap().handle_key().unwrap(), first);
    }

    #[test]
    fn a_key_of_a_wrong_length_or_open_to_others_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::take(folder.path()).unwrap();
        state.handle_key().unwrap();
        let key = folder.path().join(KEY);
        fs::set_permissions(&key, Permissions::from_mode(0o640)).unwrap();
        assert!(state.handle_key().unwrap_err().to_string().contains("mode 0640"));
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        fs::write(&key, [1; 15]).unwrap();
        assert!(state.handle_key().unwrap_err().to_string().contains("has 15 bytes"));
    }

    #[test]
    fn the_token_of_the_web_page_is_private_and_new_at_each_start() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateFolder::take(folder.path()).unwrap();
        let first = state.web_token().unwrap();
        assert_ne!(state.web_token().unwrap().as_str(), first.as_str());
        let mode = fs::metadata(folder.path().join(WEB_TOKEN)).unwrap().mode() & 0o7777;
        assert_eq!(mode, 0o600);
    }

    #[test]
    fn a_state_folder_belongs_to_one_server() {
        let folder = tempfile::tempdir().unwrap();
        let first = StateFolder::take(folder.path()).unwrap();
        let error = StateFolder::take(folder.path()).unwrap_err().to_string();
        assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
        drop(first);
        StateFolder::take(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [0o720, 0o702, 0o1777] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let error = StateFolder::take(folder.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("has mode {mode:04o}")), "{error}");
        }
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        drop(StateFolder::take(folder.path()).unwrap());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(folder.path(), Some(1), None).unwrap();
            let error = StateFolder::take(folder.path()).unwrap_err().to_string();
            assert!(error.contains("belongs to user 1"), "{error}");
        } else {
            eprintln!("skipped: only root can change the owner of a folder");
        }
    }

    #[test]
    fn a_path_too_long_for_a_socket_is_refused() {
        assert!(control_socket(Path::new("/tmp")).is_ok());
        let long = format!("/tmp/{}", "x".repeat(100));
        assert!(control_socket(Path::new(&long)).is_err());
    }
}
