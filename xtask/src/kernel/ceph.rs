//! A Ceph of one node in the network of a test, on whose file system the server keeps its files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::ground::output_of;
use super::network::Network;

/// Starts the daemons, and ends them when its standard input ends. The tests of the backend use it,
/// too.
const CLUSTER: &str = include_str!("../../../crates/backend/src/ceph/tests/cluster.sh");

/// Makes the exported directory, and copies it, as a client of Ceph beside the server.
const CLIENT: &str = include_str!("ceph_client.py");

/// The port of the monitor on the loopback device, which each network has of its own.
const PORT: &str = "6789";

/// The interpreter that has Debian's packages of Python.
const PYTHON: &str = "/usr/bin/python3";

/// Programs of the cluster.
const PROGRAMS: &[&str] = &["ceph", "ceph-mon", "ceph-osd", "ceph-mds"];

/// A cluster, which ends when this is dropped.
pub(super) struct CephCluster<'n> {
    network: &'n Network,
    script: Child,
    /// The end of this pipe ends the cluster.
    input: Option<ChildStdin>,
    configuration: PathBuf,
}

/// The reason why tests on Ceph cannot run on this machine, if there is one.
pub(super) fn missing() -> Option<String> {
    let succeeds = |command: &mut Command| {
        let done = command.stdin(Stdio::null()).output();
        done.is_ok_and(|output| output.status.success())
    };
    let is_there = |program: &&str| succeeds(Command::new(program).arg("--version"));
    let can_be_client = || succeeds(Command::new(PYTHON).args(["-c", "import cephfs"]));
    let is_whole = PROGRAMS.iter().all(is_there) && can_be_client();
    let packages = "ceph-mon, ceph-osd, ceph-mds, ceph-common, libcephfs2";
    (!is_whole).then(|| format!("needs Ceph (Debian packages {packages})"))
}

/// The configuration of the cluster of a server that has this folder.
pub(super) fn configuration(folder: &Path) -> PathBuf {
    folder.join("ceph/ceph.conf")
}

impl<'n> CephCluster<'n> {
    /// Starts a cluster in the network, whose file system has an empty directory to export.
    ///
    /// # Errors
    /// If it does not start; the end of its log is in the message.
    pub(super) fn start(network: &'n Network, folder: &Path) -> Result<Self> {
        let configuration = configuration(folder);
        let data = configuration.parent().unwrap_or(folder);
        fs::create_dir_all(data)?;
        let own = ["unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"];
        let data_text = data.display().to_string();
        let script = ["sh", "-c", CLUSTER, "cluster.sh", &data_text, PORT];
        let mut command = network.command(&[&own[..], &script].concat());
        let mut script = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, out) = (script.stdin.take(), script.stdout.take());
        let mut ready = String::new();
        BufReader::new(out.context("the cluster has no output")?).read_line(&mut ready)?;
        let log = fs::read_to_string(data.join("log/out")).unwrap_or_default();
        let cluster = Self { network, script, input, configuration };
        ensure!(ready == "ready\n", "Ceph does not start: {}", super::ending(&log));
        cluster.run_client(&["make"])?;
        Ok(cluster)
    }

    /// Copies the exported directory to a folder of this machine.
    ///
    /// # Errors
    /// If something of it cannot be read.
    pub(super) fn copy_to(&self, folder: &Path) -> Result<()> {
        self.run_client(&["copy", &folder.display().to_string()])
    }

    fn run_client(&self, arguments: &[&str]) -> Result<()> {
        let configuration = self.configuration.display().to_string();
        let client = [PYTHON, "-c", CLIENT, &configuration];
        output_of(self.network.command(&[&client[..], arguments].concat()))?;
        Ok(())
    }
}

impl Drop for CephCluster<'_> {
    fn drop(&mut self) {
        drop(self.input.take());
        // This fails only if the process has ended.
        let _ = self.script.wait();
    }
}
