//! An etcd of one member on this machine, and what it counts.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::process::{CpuTime, StartedServer};
use comity_bench::targets::free_address;
use comity_store::etcd::Etcd;

/// Seconds that etcd has to start.
const START_SECONDS: u64 = 60;

/// Time that etcd has for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running etcd.
pub(super) struct EtcdMember {
    address: SocketAddr,
    server: StartedServer,
}

/// The counters of etcd since its start.
pub(super) struct EtcdCounts {
    metrics: BTreeMap<String, f64>,
    cpu: CpuTime,
}

impl EtcdMember {
    /// Starts it in an empty folder; `None` if etcd is not installed.
    pub(super) fn start(folder: &Path) -> Result<Option<Self>> {
        if Command::new("etcd").arg("--version").stdout(Stdio::null()).status().is_err() {
            return Ok(None);
        }
        let (address, peer) = (free_address()?, free_address()?);
        let (client, peer) = (format!("http://{address}"), format!("http://{peer}"));
        let mut command = Command::new("etcd");
        command.args(["--name", "t", "--logger", "zap", "--log-level", "error"]);
        command.arg("--data-dir").arg(folder.join("etcd"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("t={peer}")]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let processors: Vec<usize> = (0..std::thread::available_parallelism()?.get()).collect();
        let mut member = Self { address, server: StartedServer::start(&mut command, &processors)? };
        let etcd = member.client()?;
        member.server.until(START_SECONDS, || etcd.get(b"ready").is_ok())?;
        Ok(Some(member))
    }

    /// Its address for heads.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Makes a client of it.
    pub(super) fn client(&self) -> Result<Etcd> {
        Ok(Etcd::new(&[self.url()], None, PATIENCE)?)
    }

    /// Reads its counters.
    pub(super) fn counts(&self) -> Result<EtcdCounts> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        let line = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        let metrics = text.lines().filter(|line| !line.starts_with('#')).filter_map(line);
        Ok(EtcdCounts { metrics: metrics.collect(), cpu: CpuTime::of(self.server.id())? })
    }
}

impl EtcdCounts {
    /// Returns a figure that grows, as the difference to an earlier one.
    pub(super) fn since(&self, before: &Self, name: &str) -> f64 {
        self.value(name) - before.value(name)
    }

    /// Returns the sum of the figures whose names begin so.
    pub(super) fn value(&self, name: &str) -> f64 {
        let named = self.metrics.iter().filter(|(found, _)| found.starts_with(name));
        named.map(|(_, value)| value).sum()
    }

    /// Returns the number of requests of a method that were answered.
    pub(super) fn requests(&self, before: &Self, method: &str) -> f64 {
        let is_of = |name: &str| {
            name.starts_with("grpc_server_handled_total{")
                && name.contains("grpc_code=\"OK\"")
                && name.contains(&format!("grpc_method=\"{method}\""))
        };
        let sum = |counts: &Self| -> f64 {
            counts.metrics.iter().filter(|(name, _)| is_of(name)).map(|(_, value)| value).sum()
        };
        sum(self) - sum(before)
    }

    /// Returns the bytes that were sent to clients.
    pub(super) fn sent_bytes(&self, before: &Self) -> f64 {
        self.since(before, "etcd_network_client_grpc_sent_bytes_total")
    }

    /// Returns the processor time in microseconds.
    pub(super) fn microseconds(&self, before: &Self) -> f64 {
        self.cpu.since(&before.cpu) as f64 / 1e3
    }

    /// Returns the bytes of the database that are in use.
    pub(super) fn database_bytes(&self) -> f64 {
        self.value("etcd_mvcc_db_total_size_in_use_in_bytes")
    }
}

/// Fails with a hint if etcd is missing.
pub(super) fn required(member: Option<EtcdMember>) -> Result<EtcdMember> {
    member.context("etcd is not installed (Debian: etcd-server)")
}
