//! A Ceph of one node, on a free loopback port, in a temporary folder.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

/// The reason why a test is skipped, if there is no cluster.
pub const NEEDED: &str = "needs Ceph (Debian packages ceph-mon, ceph-osd, ceph-mds, libcephfs2)";

const SCRIPT: &str = include_str!("cluster.sh");

/// A running cluster with one file system. It ends on drop, and with the process.
pub struct CephCluster {
    script: Child,
    /// The folder, which the script removes.
    folder: PathBuf,
}

impl CephCluster {
    /// Starts a cluster and waits until it serves the file system. Returns `None` without the
    /// programs.
    pub fn start() -> Option<Self> {
        let is_there = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        let needed = ["ceph", "ceph-mon", "ceph-osd", "ceph-mds"];
        if !needed.iter().all(is_there) {
            return None;
        }
        let folder = tempfile::tempdir().unwrap().keep();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut script = Command::new("sh")
            .args(["-c", SCRIPT, "cluster.sh"])
            .arg(&folder)
            .arg(port.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        BufReader::new(script.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        let cluster = Self { script, folder };
        let log = || std::fs::read_to_string(cluster.folder.join("log/out"));
        assert_eq!(ready, "ready\n", "Ceph does not start: {:?}", log());
        Some(cluster)
    }

    /// The configuration file.
    pub fn configuration(&self) -> PathBuf {
        self.folder.join("ceph.conf")
    }

    /// Runs a command of the program `ceph`, which must succeed.
    pub fn command(&self, arguments: &[&str]) -> Output {
        let done = Command::new("ceph")
            .arg("-c")
            .arg(self.configuration())
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(done.status.success(), "ceph {arguments:?}: {done:?}");
        done
    }
}

impl CephCluster {
    /// Sends the metadata server a signal, such as `STOP` and `CONT`.
    pub fn signal_metadata_server(&self, signal: &str) {
        let id = std::fs::read_to_string(self.folder.join("mds.pid")).unwrap();
        let sent = Command::new("kill").args(["-s", signal, id.trim()]).status().unwrap();
        assert!(sent.success(), "the metadata server does not run");
    }
}

impl Drop for CephCluster {
    fn drop(&mut self) {
        // The script kills the daemons when its standard input ends.
        drop(self.script.stdin.take());
        let _ = self.script.wait();
    }
}
