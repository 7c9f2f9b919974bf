//! A metadata server and its data servers.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::limits::START_SECONDS_MAX;
use comity_bench::process::StartedServer;
use comity_bench::targets::free_address;

use super::PnfsBench;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerProcess, nfs_server};

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The processors of data servers.
const BOTH: [usize; 2] = [SERVER_PROCESSOR, LOAD_PROCESSOR];
/// The key that all servers share.
const KEY: &str = "000102030405060708090a0b0c0d0e0f\n";
/// The name of the configuration of the metadata server.
const CONFIGURATION: &str = "comity.toml";

/// The place of a data server in the network.
#[derive(Debug, Clone)]
pub(super) struct StorePlace {
    /// The address of the data server.
    pub(super) address: SocketAddr,
    /// The address of the metadata server, as the data server sees it.
    pub(super) metadata_server: IpAddr,
    /// The network namespace of the data server, if it has its own.
    pub(super) namespace: Option<String>,
}

/// A metadata server that serves an empty tree, and the data servers of it. Without data servers it
/// is a server like any other.
#[derive(Debug)]
pub(super) struct PlacedSite {
    pub(super) mds: ServerProcess,
    /// The tree on the metadata server.
    pub(super) tree: FixtureTree,
    work: PathBuf,
    _stores: Vec<StartedServer>,
}

impl StorePlace {
    /// Places for data servers on loopback.
    pub(super) fn on_loopback(count: usize) -> Result<Vec<Self>> {
        let place = |_| {
            let address = free_address()?;
            Ok(Self { address, metadata_server: LOOPBACK, namespace: None })
        };
        (0..count).map(place).collect()
    }
}

impl PlacedSite {
    /// Starts the servers, with their folders in `folder`.
    ///
    /// # Errors
    /// A server does not start.
    pub(super) fn start(bench: &PnfsBench, folder: &Path, places: &[StorePlace]) -> Result<Self> {
        Self::start_with(bench, folder, (places, ""))
    }

    /// The same with more settings of the placement, as lines of the configuration.
    ///
    /// # Errors
    /// As [`PlacedSite::start`].
    pub(super) fn start_with(
        bench: &PnfsBench,
        folder: &Path,
        (places, settings): (&[StorePlace], &str),
    ) -> Result<Self> {
        let work = tempfile::Builder::new().prefix("site-").tempdir_in(folder)?.keep();
        fs::set_permissions(&work, Permissions::from_mode(0o755))?;
        let key = work.join("key");
        fs::write(&key, KEY)?;
        fs::set_permissions(&key, Permissions::from_mode(0o600))?;
        let program = bench.test_bed.program();
        let stores = places.iter().enumerate();
        let stores = stores.map(|(at, place)| start_store(program, &work, (at, place)));
        let stores = stores.collect::<Result<Vec<_>>>()?;
        let tree = work.join("tree");
        fs::create_dir(&tree)?;
        let tree = FixtureTree::at(&tree);
        tree.directory(FixtureTree::SMALL)?;
        fs::write(work.join(CONFIGURATION), text(&tree, &key, (places, settings))?)?;
        let mds = start_mds(program, &work, &tree, "state")?;
        Ok(Self { mds, tree, work, _stores: stores })
    }

    /// Starts another metadata server of the same files in place of the first one. It knows no
    /// client, and has none of the memory that the first one has freed and not given back.
    ///
    /// # Errors
    /// It does not start.
    pub(super) fn replace_mds(&mut self, bench: &PnfsBench) -> Result<()> {
        self.mds = start_mds(bench.test_bed.program(), &self.work, &self.tree, "second-state")?;
        Ok(())
    }

    /// The path of the directory of small files from the root of the metadata server.
    pub(super) fn small(&self) -> String {
        self.tree.small().display().to_string()
    }
}

fn start_store(
    program: &Path,
    work: &Path,
    (at, place): (usize, &StorePlace),
) -> Result<StartedServer> {
    let folder = work.join(store_name(at));
    fs::create_dir(&folder)?;
    let mut command = match &place.namespace {
        None => Command::new(program),
        Some(namespace) => {
            let mut inside = Command::new("ip");
            inside.args(["netns", "exec", namespace]).arg(program);
            inside
        }
    };
    command.args(["serve", "--no-register", "--listen", &place.address.ip().to_string()]);
    command.args(["--port", &place.address.port().to_string()]);
    command.args(["--for", &place.metadata_server.to_string()]);
    command.arg("--placement-key").arg(work.join("key")).arg("--data-server").arg(&folder);
    command.arg("--state-dir").arg(work.join(format!("state-{at}")));
    let log = log_to(&mut command, work, &store_name(at))?;
    let mut server = StartedServer::start(&mut command, &BOTH)?;
    let answers = || TcpStream::connect(place.address).is_ok();
    server.until(START_SECONDS_MAX, answers).with_context(|| said("a data server", &log))?;
    Ok(server)
}

/// Starts a metadata server. It does not hold its clients' state against programs of this machine:
/// each open file would need a descriptor.
fn start_mds(
    program: &Path,
    work: &Path,
    tree: &FixtureTree,
    state: &str,
) -> Result<ServerProcess> {
    let address = free_address()?;
    let mut command = Command::new(program);
    command.args(["serve", "--no-register", "--no-local-locks"]);
    command.args(["--listen", &address.ip().to_string(), "--port", &address.port().to_string()]);
    command.arg("--config").arg(work.join(CONFIGURATION)).arg("--state-dir").arg(work.join(state));
    let log = log_to(&mut command, work, "mds")?;
    let server = StartedServer::start(&mut command, &[SERVER_PROCESSOR])?;
    nfs_server("comity", tree, address, server).with_context(|| said("the metadata server", &log))
}

fn log_to(command: &mut Command, work: &Path, name: &str) -> Result<PathBuf> {
    let log = work.join(format!("{name}.log"));
    command.stdout(File::create(&log)?).stderr(File::options().append(true).open(&log)?);
    Ok(log)
}

fn said(what: &str, log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    format!("{what} does not start: {}", text.trim())
}

fn store_name(at: usize) -> String {
    format!("store-{at}")
}

/// The configuration of the metadata server.
fn text(
    tree: &FixtureTree,
    key: &Path,
    (places, settings): (&[StorePlace], &str),
) -> Result<String> {
    let mut text = format!(
        "[[export]]\npath = {:?}\noptions = [\"rw\", \"insecure\", \"no_root_squash\"]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n",
        tree.root()
    );
    if !places.is_empty() {
        write!(text, "[[placement]]\nexport = {:?}\nkey = {key:?}\n{settings}", tree.root())?;
        text.push_str("data_servers = [\n");
        for (at, StorePlace { address, .. }) in places.iter().enumerate() {
            writeln!(text, "  {{ name = {:?}, address = \"{address}\" }},", store_name(at))?;
        }
        text.push_str("]\n");
    }
    Ok(text)
}
