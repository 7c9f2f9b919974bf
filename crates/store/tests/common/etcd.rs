//! An etcd of one member, on free loopback ports, in a temporary folder.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running etcd, which is killed on drop.
pub struct EtcdServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl EtcdServer {
    /// Starts etcd and waits until it answers. Without the program it prints why the test is
    /// skipped.
    pub fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (port, peer_port) = (free_port(), free_port());
        let [client, peer] = [port, peer_port].map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = Command::new("etcd");
        command.args(["--name", "t", "--logger", "zap", "--log-level", "error"]);
        command.arg("--data-dir").arg(folder.path().join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("t={peer}")]);
        // The shortest lease that etcd grants is one and a half election timeouts.
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("skipped: needs etcd (Debian package etcd-server)");
            return None;
        };
        let server = Self { child, port, _folder: folder };
        server.wait_until_it_answers();
        Some(server)
    }

    fn wait_until_it_answers(&self) {
        let etcd = comity_store::etcd::Etcd::new(&[self.address()], Duration::from_secs(1));
        let (etcd, until) = (etcd.unwrap(), Instant::now() + Duration::from_secs(60));
        while etcd.get(b"ready").is_err() {
            assert!(Instant::now() < until, "etcd does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The address for clients.
    pub fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Stops it without ending it (SIGSTOP).
    pub fn freeze(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
    }

    /// Lets it go on after [`EtcdServer::freeze`].
    pub fn thaw(&self) {
        kill_process(Pid::from_child(&self.child), Signal::CONT).unwrap();
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
