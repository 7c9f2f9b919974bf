//! An etcd of one member, on free loopback ports, in a temporary folder.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use comity_store::etcd::{Etcd, TlsSettings};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A running etcd, which is killed on drop.
pub struct EtcdServer {
    child: Child,
    address: String,
    _folder: TempDir,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl EtcdServer {
    /// Starts etcd and waits until it answers. Without the program it prints why the test is
    /// skipped.
    pub fn start() -> Option<Self> {
        Self::start_with("http", &[], None)
    }

    /// Starts it with more arguments; clients use the scheme of URLs and the settings of TLS.
    pub fn start_with(scheme: &str, arguments: &[&str], tls: Option<TlsSettings>) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (client, peer) = (free_port(), free_port());
        let client = format!("{scheme}://127.0.0.1:{client}");
        let peer = format!("http://127.0.0.1:{peer}");
        let mut command = Command::new("etcd");
        command.args(["--name", "t", "--logger", "zap", "--log-level", "error"]);
        command.arg("--data-dir").arg(folder.path().join("data"));
        command.args(["--listen-client-urls", &client, "--advertise-client-urls", &client]);
        command.args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer]);
        command.args(["--initial-cluster", &format!("t={peer}")]);
        // The shortest lease that etcd grants is one and a half election timeouts.
        command.args(["--heartbeat-interval", "50", "--election-timeout", "500"]);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("skipped: needs etcd (Debian package etcd-server)");
            return None;
        };
        let server = Self { child, address: client, _folder: folder };
        server.wait_until_it_answers(tls);
        Some(server)
    }

    fn wait_until_it_answers(&self, tls: Option<TlsSettings>) {
        let etcd = Etcd::new(&[self.address()], tls, Duration::from_secs(1));
        let (etcd, until) = (etcd.unwrap(), Instant::now() + Duration::from_secs(60));
        while let Err(error) = etcd.get(b"ready") {
            assert!(Instant::now() < until, "{error}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The address for clients.
    pub fn address(&self) -> String {
        self.address.clone()
    }

    /// Stops it without ending it (SIGSTOP), and waits until all of its threads have stopped.
    pub fn freeze(&self) {
        kill_process(Pid::from_child(&self.child), Signal::STOP).unwrap();
        let threads = format!("/proc/{}/task", self.child.id());
        let is_stopped = |stat: String| stat.rsplit(')').next().unwrap().starts_with(" T");
        let all_stopped = || {
            let threads = std::fs::read_dir(&threads).unwrap();
            let stats = threads.map(|it| std::fs::read_to_string(it.unwrap().path().join("stat")));
            stats.flatten().all(is_stopped)
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !all_stopped() {
            assert!(Instant::now() < deadline, "etcd does not stop");
            std::thread::sleep(Duration::from_millis(1));
        }
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
