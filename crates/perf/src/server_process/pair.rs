//! Two servers of the same files between which an export moves.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use comity_bench::process::StartedServer;
use comity_bench::targets::free_address;
use serde::Deserialize;
use serde_json::Value;

use super::{ServerProcess, TestBed};

const NAMES: [&str; 2] = ["a", "b"];

/// Longest time for the start of a server, in seconds.
const START_SECONDS: u64 = 60;

/// The two servers. The first one serves the export at the start.
pub(crate) struct ServerPair<'t> {
    test_bed: &'t TestBed,
    addresses: [SocketAddr; 2],
    first: ServerProcess,
    _second: StartedServer,
}

/// The answer of `comity migrate --json`.
#[derive(Debug, Deserialize)]
pub(crate) struct MovedExport {
    /// The number of opens, locks and delegations.
    pub(crate) states: usize,
    /// The length of the state of the clients.
    pub(crate) state_bytes: usize,
    /// The time for which nobody served the export.
    pub(crate) frozen_milliseconds: u64,
}

impl<'t> ServerPair<'t> {
    /// Starts each server on its processor.
    pub(crate) fn start(test_bed: &'t TestBed, processors: [usize; 2]) -> Result<Self> {
        let addresses = [free_address()?, free_address()?];
        let (first, first_key) = start(test_bed, (NAMES[0], processors[0]), addresses[0])?;
        let [own, other] = NAMES.map(|name| state(&test_bed.work, name));
        fs::create_dir(&other)?;
        fs::copy(own.join("handle.key"), other.join("handle.key"))?;
        let (second, second_key) = start(test_bed, (NAMES[1], processors[1]), addresses[1])?;
        configure(test_bed, 0, (addresses[1], &second_key))?;
        configure(test_bed, 1, (addresses[0], &first_key))?;
        let first = test_bed.adopt(addresses[0], first)?;
        Ok(Self { test_bed, addresses, first, _second: second })
    }

    /// Returns the server that serves at first.
    pub(crate) const fn first(&self) -> &ServerProcess {
        &self.first
    }

    /// Returns the addresses of both servers.
    pub(crate) const fn addresses(&self) -> [SocketAddr; 2] {
        self.addresses
    }

    /// Returns the answer of the first server to `comity load advise --json`.
    pub(crate) fn advice(&self) -> Result<Value> {
        let said = ask(self.test_bed, 0, &["load", "advise", "--json"])?;
        serde_json::from_slice(&said.stdout).context("the answer of comity load advise")
    }

    /// Moves the export from a server to the other one.
    pub(crate) fn migrate(&self, from: usize) -> Result<MovedExport> {
        let root = self.test_bed.layout.root().display().to_string();
        let words = ["migrate", &root, "--to", NAMES[1 - from], "--json"];
        let said = ask(self.test_bed, from, &words)?;
        serde_json::from_slice(&said.stdout).context("the answer of comity migrate")
    }
}

fn state(work: &Path, name: &str) -> PathBuf {
    work.join(format!("state-{name}"))
}

/// Starts a server without exports. Returns it with its key.
fn start(
    test_bed: &TestBed,
    (name, processor): (&str, usize),
    address: SocketAddr,
) -> Result<(StartedServer, String)> {
    let work = &test_bed.work;
    let (configuration, banner) =
        (work.join(format!("{name}.toml")), work.join(format!("{name}.json")));
    fs::write(&configuration, "")?;
    let mut command = Command::new(test_bed.program());
    command.args(["serve", "--json", "--no-register", "--no-local-locks"]);
    command.args(["--metrics", &free_address()?.to_string()]);
    command.args(["--listen", "127.0.0.1", "--port", &address.port().to_string()]);
    command.arg("--state-dir").arg(state(work, name)).arg("--config").arg(&configuration);
    command.stdout(File::create(&banner)?);
    command.stderr(File::create(work.join(format!("{name}.log")))?);
    let mut server = StartedServer::start(&mut command, &[processor])?;
    let mut key = None;
    server.until(START_SECONDS, || {
        key = key_in(&banner);
        key.is_some()
    })?;
    Ok((server, key.context("the server shows no key")?))
}

/// Returns the key that a server has printed if it has started.
fn key_in(banner: &Path) -> Option<String> {
    let said: Value = serde_json::from_slice(&fs::read(banner).ok()?).ok()?;
    Some(said.get("tls")?.get("key")?.as_str()?.to_owned())
}

/// Configures a server with the other one as a peer. The first server serves the tree, and the
/// second refers to it.
fn configure(test_bed: &TestBed, own: usize, (peer, key): (SocketAddr, &str)) -> Result<()> {
    let (name, root) = (NAMES[1 - own], test_bed.layout.root());
    let home = if own == 0 { "" } else { ", \"home=a\"" };
    let text = format!(
        "[[peer]]\nname = \"{name}\"\naddress = \"{peer}\"\nkey = \"{key}\"\n\
         [[export]]\npath = {root:?}\n\
         options = [\"rw\", \"insecure\", \"no_root_squash\"{home}]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n"
    );
    fs::write(test_bed.work.join(format!("{}.toml", NAMES[own])), text)?;
    ask(test_bed, own, &["reload"]).map(drop)
}

/// Asks a server by its control socket.
fn ask(test_bed: &TestBed, server: usize, words: &[&str]) -> Result<Output> {
    let folder = state(&test_bed.work, NAMES[server]);
    let mut command = Command::new(test_bed.program());
    let said = command.args(words).arg("--state-dir").arg(folder).output()?;
    let refusal = || format!("{words:?}: {}", String::from_utf8_lossy(&said.stderr).trim());
    ensure!(said.status.success(), refusal());
    Ok(said)
}
