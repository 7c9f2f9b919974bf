//! The file system that is to be mounted: a directory, memory, or a directory of an NFS server.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use comity_backend::{
    DIRECTORY, Location, MEMORY, Memory, MemoryOptions, OpenRequest, Passthrough,
    PassthroughOptions, Registry,
};
use comity_remote::{ClientIdentity, DelegationUse, NfsVersion, Tcp};
use comity_vfs::{Cred, Fs, Gid, Status, Uid};

use crate::mount_channel::ChannelChoice;
use crate::mount_number::number;

/// The scheme of servers.
const NFS: &str = "nfs";

/// The port of NFS (RFC 1813, 1.1).
const PORT: u16 = 2049;

/// Time after which a client whose call waits for another server is asked to try again: shorter
/// than the time after which clients report that this server does not respond.
const SERVED_PATIENCE: Duration = Duration::from_secs(5);

/// A directory of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ServerPath {
    host: String,
    port: Option<u16>,
    path: String,
}

/// The options about the server that were given.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServerChoice {
    /// The first option that was given, for the error if the source is not a server.
    given: Option<String>,
    port: Option<u16>,
    versions: Option<(NfsVersion, NfsVersion)>,
    is_soft: bool,
    /// True if this program serves the file system to NFS clients.
    is_served: bool,
    patience: Option<Duration>,
    retries: Option<u32>,
    read_bytes_max: Option<u32>,
    write_bytes_max: Option<u32>,
    connections: Option<usize>,
    channel: ChannelChoice,
}

/// A file system that was opened, with facts about it.
pub(crate) struct OpenedSource {
    /// The file system.
    pub(crate) fs: Arc<dyn Fs>,
    /// The name by which a cache recognizes the file system.
    pub(crate) identity: String,
    /// True if the file system is on another machine, whose ids need not be ours.
    pub(crate) is_remote: bool,
    /// A notice for the user about the server.
    pub(crate) greeting: Option<String>,
}

impl ServerChoice {
    /// Reads an option; returns whether it is one about the server.
    pub(crate) fn read(&mut self, name: &str, value: Option<&str>) -> Result<bool> {
        let given = value.unwrap_or_default();
        match (name, value) {
            ("hard", None) => self.is_soft = false,
            ("soft", None) => self.is_soft = true,
            ("vers" | "nfsvers", Some(version)) => self.versions = Some(versions(version)?),
            ("port", Some(_)) => self.port = Some(number(name, given, 65_535)? as u16),
            ("timeo", Some(_)) => {
                // The unit is a tenth of a second, as in nfs(5).
                let tenths = number(name, given, 36_000)?.max(1);
                self.patience = Some(Duration::from_millis(tenths * 100));
            }
            ("retrans", Some(_)) => self.retries = Some(number(name, given, 1_000)? as u32),
            ("rsize", Some(_)) => self.read_bytes_max = Some(transfer(name, given)?),
            ("wsize", Some(_)) => self.write_bytes_max = Some(transfer(name, given)?),
            ("nconnect", Some(_)) => self.connections = Some(number(name, given, 16)? as usize),
            _ if self.channel.read(name, value)? => {}
            _ => return Ok(false),
        }
        self.given.get_or_insert_with(|| name.to_owned());
        Ok(true)
    }

    /// Makes the options those of a file system that is served to clients. A late call does not
    /// delay the clients: they are asked to try again, or with `soft` get an error.
    pub(crate) fn served(self) -> Self {
        Self { is_served: true, ..self }
    }

    /// The absolute path of a source on its server.
    ///
    /// # Errors
    /// The source is no directory of a server.
    pub(crate) fn path_on_server(source: &Path) -> Result<PathBuf> {
        match server_path(source)? {
            Some(server) => Ok(Path::new("/").join(server.path.trim_matches('/'))),
            None => bail!("{}: give nfs://HOST[:PORT]/PATH", source.display()),
        }
    }

    /// Opens the file system of a source.
    ///
    /// # Errors
    /// The reason why it cannot be opened, with what to do about it.
    pub(crate) fn open(&self, source: &Path, dir: &Path) -> Result<OpenedSource> {
        if let Some(server) = server_path(source)? {
            return self.open_server(&server, dir);
        }
        if let Some(option) = &self.given {
            bail!("-o {option} is for servers, and {} is none", source.display());
        }
        let backends =
            Registry::default().with(DIRECTORY, open_directory).with(MEMORY, |_| memory());
        let request = OpenRequest { location: Location::parse(source), cross_mounts: true };
        let fs = backends.open(&request).map_err(|said| anyhow!("cannot mount: {said}"))?;
        let identity = source.display().to_string();
        Ok(OpenedSource { fs, identity, is_remote: false, greeting: None })
    }

    fn open_server(&self, server: &ServerPath, dir: &Path) -> Result<OpenedSource> {
        let port = server.port.or(self.port).unwrap_or(PORT);
        let channel = self.channel.channel(Tcp::new(server.host.clone(), port))?;
        // Another key may see other files: data cached for one key is not shown to another.
        let user = channel.key.map(|key| format!(" as {key}")).unwrap_or_default();
        let identity = format!("nfs://{}:{port}/{}{user}", server.host, server.path);
        let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
        // The same in each run of this mount, and different for every other mount.
        let owner = format!("comity {name} {identity} {}", dir.display());
        let options = self.options(ClientIdentity::new(owner)?).at(&server.path);
        let mounted = comity_remote::mount(channel.transport(), &options)
            .map_err(|error| channel.advise(error))?;
        let greeting = channel.remember()?;
        Ok(OpenedSource { fs: mounted.fs, identity, is_remote: true, greeting })
    }

    fn options(&self, identity: ClientIdentity) -> comity_remote::MountOptions {
        let user = Uid::new(rustix::process::geteuid().as_raw());
        let group = Gid::new(rustix::process::getegid().as_raw());
        let usual = comity_remote::MountOptions::new(identity, Cred::new(user, group));
        let (patience, retries) = match self.is_served {
            true => (SERVED_PATIENCE, 0),
            false => (usual.patience, usual.retries),
        };
        comity_remote::MountOptions {
            versions: self.versions.unwrap_or(usual.versions),
            connections: self.connections.unwrap_or(usual.connections),
            patience: self.patience.unwrap_or(patience),
            retries: self.retries.unwrap_or(retries),
            is_soft: self.is_soft || self.is_served,
            late: if self.is_soft { Status::Io } else { Status::Delay },
            read_bytes_max: self.read_bytes_max.unwrap_or(usual.read_bytes_max),
            write_bytes_max: self.write_bytes_max.unwrap_or(usual.write_bytes_max),
            // The kernel and the cache must drop their data before a delegation is returned.
            delegations: DelegationUse::HandedUp,
            ..usual
        }
    }
}

/// Returns whether a source is a path of this machine, which may be relative.
pub(crate) fn is_directory(source: &Path) -> bool {
    let is_server = server_path(source).is_ok_and(|server| server.is_some());
    !is_server && Location::parse(source).scheme == DIRECTORY
}

fn versions(text: &str) -> Result<(NfsVersion, NfsVersion)> {
    match text {
        "3" => Ok((NfsVersion::Three, NfsVersion::Three)),
        "4" => Ok((NfsVersion::FourOne, NfsVersion::FourTwo)),
        "4.1" => Ok((NfsVersion::FourOne, NfsVersion::FourOne)),
        "4.2" => Ok((NfsVersion::FourTwo, NfsVersion::FourTwo)),
        _ => bail!("-o vers={text}: give 3, 4, 4.1 or 4.2"),
    }
}

fn transfer(name: &str, value: &str) -> Result<u32> {
    Ok(number(name, value, 1 << 20)?.max(4_096) as u32)
}

/// Reads `nfs://HOST[:PORT]/PATH` or `HOST:/PATH`, where HOST may be an address of IPv6 in
/// brackets; `None` for other sources.
fn server_path(source: &Path) -> Result<Option<ServerPath>> {
    let Some(text) = source.to_str() else { return Ok(None) };
    if let Some(rest) = text.strip_prefix("nfs://") {
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = host_and_port(host)?;
        return Ok(Some(ServerPath { host, port, path: path.to_owned() }));
    }
    let end =
        if text.starts_with('[') { text.find("]:/").map(|at| at + 1) } else { text.find(":/") };
    let known = [DIRECTORY, MEMORY, NFS];
    match end.and_then(|end| Some((text.get(..end)?, text.get(end + 2..)?))) {
        Some((host, path)) if !host.is_empty() && !host.contains('/') && !known.contains(&host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
            Ok(Some(ServerPath { host, port: None, path: path.to_owned() }))
        }
        _ => Ok(None),
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>)> {
    let wrong = || anyhow!("nfs://{text}: give nfs://HOST/PATH or nfs://HOST:PORT/PATH");
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']').ok_or_else(wrong)?;
            (host, behind.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port.map(|port| port.parse().map_err(|_| wrong())).transpose()?;
    if host.is_empty() { Err(wrong()) } else { Ok((host.to_owned(), port)) }
}

fn open_directory(request: &OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> {
    let cross_mounts = request.cross_mounts;
    let options = PassthroughOptions { cross_mounts, ..PassthroughOptions::default() };
    match Passthrough::open(request.location.place, options) {
        Ok(opened) => Ok(Arc::new(opened)),
        Err(error) => Err(error.to_string()),
    }
}

fn memory() -> Result<Arc<dyn Fs>, String> {
    match Memory::new(MemoryOptions::of_process()) {
        Ok(memory) => Ok(Arc::new(memory)),
        Err(status) => Err(status.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(source: &str) -> Option<(String, Option<u16>, String)> {
        let server = server_path(Path::new(source)).unwrap()?;
        Some((server.host, server.port, server.path))
    }

    #[test]
    fn servers_are_told_from_paths() {
        let told = |host: &str, port, path: &str| Some((host.to_owned(), port, path.to_owned()));
        assert_eq!(server("nfs://host/a/b"), told("host", None, "a/b"));
        assert_eq!(server("nfs://host:2050/"), told("host", Some(2050), ""));
        assert_eq!(server("nfs://[::1]:5/a"), told("::1", Some(5), "a"));
        assert_eq!(server("host.example:/srv"), told("host.example", None, "srv"));
        assert_eq!(server("[fe80::1]:/srv"), told("fe80::1", None, "srv"));
        for local in ["/srv", "srv", "dir:/srv", "memory:", "./a:/b", "/a:/b"] {
            assert_eq!(server(local), None, "{local}");
        }
        for bad in ["nfs:///a", "nfs://host:port/a", "nfs://[::1/a"] {
            assert!(server_path(Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_of_servers_are_refused_for_others() {
        let mut choice = ServerChoice::default();
        assert!(choice.read("soft", None).unwrap());
        assert!(!choice.read("ro", None).unwrap());
        let said = choice.open(Path::new("memory:"), Path::new("/mnt")).err().unwrap().to_string();
        assert!(said.contains("-o soft"), "{said}");
        assert!(choice.read("vers", Some("2")).is_err());
        assert!(choice.read("timeo", Some("never")).is_err());
    }
}
