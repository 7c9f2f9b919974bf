//! The data servers of a test of parallel NFS, in addition to the server under test. Each has a
//! host of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::host::{self, Host};
use super::network::{Network, SERVER};

/// The folder that a data server serves, as its host sees it.
const STRIPES: &str = "/srv/stripes";

/// The stripe unit in bytes.
pub(super) const UNIT_BYTES: usize = 64 << 10;

/// Longest time that a data server may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// The numbers of hosts for data servers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostCounts {
    /// Hosts on which a data server runs from the start.
    pub(super) running: u16,
    /// The kind of these data servers.
    pub(super) kind: DataServerKind,
    /// Hosts on which the first guest starts a data server itself.
    pub(super) idle: u16,
}

/// A kind of data servers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum DataServerKind {
    /// Data servers that take the layouts of their metadata server; files are in stripes.
    #[default]
    Stripes,
    /// Plain servers of NFSv3, each with a mirror of every file.
    Mirrors,
    /// Mirrors as above, of which the last one is on nfs-ganesha.
    GaneshaMirrors,
}

/// Hosts with data servers, which run until this is dropped. They are named `a`, `b` and so on.
pub(super) struct DataServers(Vec<Host>);

impl DataServers {
    /// Makes hosts and starts data servers on them, and writes the configuration of their metadata
    /// server to the folder.
    ///
    /// # Errors
    /// If one does not listen in time; its log is in the folder.
    pub(super) fn start(
        network: &Network,
        program: &Path,
        (folder, export): (&Path, &Path),
        counts: HostCounts,
    ) -> Result<Self> {
        if counts.is_none() {
            return Ok(Self(Vec::new()));
        }
        write_configuration((folder, export), counts)?;
        let make = |number| Host::new(network, number, &host_folder(folder, number));
        let all = Self((0..counts.all()).map(make).collect::<Result<_>>()?);
        let running = all.0.get(..usize::from(counts.running)).unwrap_or_default();
        for (at, host) in running.iter().enumerate() {
            match counts.kind {
                DataServerKind::Stripes => begin(host, program, folder)?,
                DataServerKind::GaneshaMirrors if at + 1 == running.len() => begin_ganesha(host)?,
                _ => begin_plain(host, program)?,
            }
        }
        let until = Instant::now() + PATIENCE;
        while !running.iter().all(|host| host.listens(2049)) {
            ensure!(Instant::now() < until, "no data server listens; see {}", folder.display());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(all)
    }

    /// Returns the host of a name.
    ///
    /// # Errors
    /// If there is no such host.
    pub(super) fn host(&self, name: &str) -> Result<&Host> {
        let mut hosts = (0..).zip(&self.0);
        let found = hosts.find(|(number, _)| host_name(*number) == name);
        Ok(found.with_context(|| format!("there is no host {name}"))?.1)
    }
}

impl HostCounts {
    /// Returns whether there are no hosts.
    pub(super) const fn is_none(self) -> bool {
        self.all() == 0
    }

    const fn all(self) -> u16 {
        self.running + self.idle
    }
}

/// The configuration of the metadata server.
pub(super) fn config(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

/// The key that the servers share.
pub(super) fn key(folder: &Path) -> PathBuf {
    folder.join("placement.key")
}

/// The folder of a data server.
pub(super) fn data(folder: &Path, number: u16) -> PathBuf {
    host::own_folder(&host_folder(folder, number), STRIPES)
}

fn host_folder(folder: &Path, number: u16) -> PathBuf {
    folder.join(format!("host-{}", host_name(number)))
}

fn host_name(number: u16) -> String {
    char::from(b'a' + number as u8).to_string()
}

fn write_configuration((folder, export): (&Path, &Path), counts: HostCounts) -> Result<()> {
    let key = key(folder);
    fs::write(&key, "000102030405060708090a0b0c0d0e0f\n")?;
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
    let placement = match counts {
        HostCounts { running: 0, .. } => String::new(),
        HostCounts { running, kind: DataServerKind::Stripes, .. } => {
            placement(&key, export, running)
        }
        HostCounts { running, .. } => mirrored(&key, export, running),
    };
    let text = format!(
        "[[export]]\npath = {export:?}\noptions = [\"rw\", \"no_root_squash\"]\n\
         clients = [{{ client = \"10.77.0.0/24\" }}]\n{placement}"
    );
    Ok(fs::write(config(folder), text)?)
}

fn placement(key: &Path, export: &Path, count: u16) -> String {
    let server = |number| {
        let (name, address) = (host_name(number), host::address(number));
        format!("{{ name = \"{name}\", address = \"{address}\" }}, ")
    };
    let servers: String = (0..count).map(server).collect();
    format!(
        "\n[[placement]]\nexport = {export:?}\n\
         key = {key:?}\nstripe_unit_bytes = {UNIT_BYTES}\ndata_servers = [{servers}]\n\
         threshold = {{ read_file_bytes = {UNIT_BYTES}, write_file_bytes = {UNIT_BYTES} }}\n"
    )
}

fn mirrored(key: &Path, export: &Path, count: u16) -> String {
    let server = |number| {
        let (name, address) = (host_name(number), host::address(number));
        format!("{{ name = \"{name}\", address = \"{address}\", path = \"{STRIPES}\" }}, ")
    };
    let servers: String = (0..count).map(server).collect();
    format!(
        "\n[[placement]]\nexport = {export:?}\nkey = {key:?}\nlayout = \"flexible-files\"\n\
         mirrors = {count}\ndata_servers = [{servers}]\n"
    )
}

/// Starts the plain server of a host.
fn begin_plain(host: &Host, program: &Path) -> Result<()> {
    let program = program.display().to_string();
    let start = format!(
        "echo '{STRIPES} 10.77.0.0/24(rw,sync,no_root_squash)' > /srv/exports\nexec {program} \
         serve --no-register --vers 3 --exports /srv/exports > /var/log/comity.log 2>&1\n"
    );
    begin_by_script(host, &start)
}

/// Starts nfs-ganesha on a host in the same way. It needs an rpcbind of its own.
fn begin_ganesha(host: &Host) -> Result<()> {
    let configuration = format!(
        "NFS_CORE_PARAM {{ Protocols = 3; Enable_NLM = false; NFS_Port = 2049; MNT_Port = 20048; \
         }} EXPORT {{ Export_Id = 1; Path = {STRIPES}; Pseudo = {STRIPES}; Access_Type = RW; \
         Squash = No_Root_Squash; SecType = sys; Protocols = 3; FSAL {{ Name = VFS; }} }}"
    );
    let start = format!(
        "mkdir -p /var/lib/nfs\nfor d in /run /var/lib/nfs; do mount -t tmpfs tmpfs $d; done\n\
         mkdir -p /run/rpcbind /run/sendsigs.omit.d /run/ganesha /var/lib/nfs/ganesha\nrpcbind\n\
         echo \"{configuration}\" > /srv/ganesha.conf\nexec ganesha.nfsd -F -f /srv/ganesha.conf \
         -L /var/log/ganesha.log -p /run/ganesha/pid\n"
    );
    begin_by_script(host, &start)
}

/// Starts a server of a host by a script, with which the test can start it again.
fn begin_by_script(host: &Host, start: &str) -> Result<()> {
    let script = format!("mkdir -p {STRIPES}; printf %s \"$0\" > /srv/start; exec sh /srv/start");
    // The host ends it.
    host.command(&["sh", "-c", &script, start]).spawn().context("start a plain server")?;
    Ok(())
}

/// Starts the data server of a host.
fn begin(host: &Host, program: &Path, folder: &Path) -> Result<()> {
    let (program, key) = (program.display().to_string(), key(folder).display().to_string());
    let script = format!("mkdir -p {STRIPES}; exec \"$0\" \"$@\" > /var/log/comity.log 2>&1");
    let shell = ["sh", "-c", &script, &program, "serve", "--no-register", "--for", SERVER];
    let more = ["--placement-key", &key, "--data-server", STRIPES];
    // The host ends it.
    host.command(&[&shell[..], &more].concat()).spawn().context("start a data server")?;
    Ok(())
}
