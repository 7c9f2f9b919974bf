//! Two heads over one folder with two exports, of which each head is the home of one.

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::common::four::Four;
use crate::common::{Place, Running, Said, comity, metrics, run, wait_until};
use crate::etcd::EtcdServer;

/// Seconds after which a silent head is followed by another.
pub(crate) const LEASE_SECONDS: u64 = 6;

pub(crate) const NAMES: [&str; 2] = ["a", "b"];

pub(crate) struct Heads {
    pub(crate) etcd: EtcdServer,
    pub(crate) place: Place,
    servers: [Option<Running>; 2],
    ports: [u16; 2],
    /// The lease of clients.
    lease: Duration,
    /// More arguments of all heads.
    arguments: Vec<String>,
}

impl Heads {
    /// Starts etcd and both heads; `None` if there is no etcd.
    pub(crate) fn new(lease: Duration) -> Option<Self> {
        let heads = Self::with_options(lease, "")?;
        wait_until("each head serves its export", || {
            let exports = heads.status(0)["exports"].clone();
            exports[0]["head"] == "a" && exports[1]["head"] == "b"
        });
        Some(heads)
    }

    /// The same, with more options of both exports, and without a wait for their heads.
    pub(crate) fn with_options(lease: Duration, more: &str) -> Option<Self> {
        Some(Self::over(EtcdServer::start()?, (lease, more), Vec::new()))
    }

    /// Starts both heads with this etcd and more arguments.
    pub(crate) fn over(
        etcd: EtcdServer,
        (lease, more): (Duration, &str),
        arguments: Vec<String>,
    ) -> Self {
        let place = Place::new();
        let mut text = String::new();
        for (folder, home) in [("one", "a"), ("two", "b")] {
            let path = place.data().join(folder);
            fs::create_dir(&path).unwrap();
            text += &format!(
                "[[export]]\npath = {path:?}\n\
                 options = [\"rw\", \"insecure\", \"no_root_squash\", \"home={home}\"{more}]\n\
                 clients = [{{ client = \"127.0.0.1\" }}]\n"
            );
        }
        place.write("heads.toml", &text);
        let (servers, ports) = ([None, None], [0; 2]);
        let mut heads = Self { etcd, place, servers, ports, lease, arguments };
        heads.start(0);
        fs::create_dir(heads.state(1)).unwrap();
        fs::copy(heads.state(0).join("handle.key"), heads.state(1).join("handle.key")).unwrap();
        heads.start(1);
        heads
    }

    /// The command that starts a head.
    pub(crate) fn command(&self, head: usize) -> Command {
        let mut command = self.arguments(NAMES[head], self.ports[head]);
        command.arg("--state-dir").arg(self.state(head));
        command
    }

    /// The command that starts a head of this name, with the same key of handles, and with the
    /// state folder `state-c`.
    pub(crate) fn command_of_third(&self, name: &str) -> Command {
        let state = self.place.path("state-c");
        fs::create_dir(&state).unwrap();
        fs::copy(self.state(0).join("handle.key"), state.join("handle.key")).unwrap();
        let mut command = self.arguments(name, 0);
        command.arg("--state-dir").arg(state);
        command
    }

    fn arguments(&self, name: &str, port: u16) -> Command {
        let mut command = comity();
        command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
        command.args(["--no-local-locks", "--port", &port.to_string()]);
        command.args(["--lease-seconds", &self.lease.as_secs().to_string()]);
        command.args(["--cluster", &self.etcd.address(), "--head", name]);
        command.args(["--head-lease-seconds", &LEASE_SECONDS.to_string()]);
        command.args(&self.arguments).arg("--config").arg(self.place.path("heads.toml"));
        command
    }

    pub(crate) fn start(&mut self, head: usize) {
        let log = File::create(self.place.path(&format!("{}.log", NAMES[head]))).unwrap();
        let server = Running::start_with_log(&mut self.command(head), log);
        self.ports[head] = server.port;
        self.servers[head] = Some(server);
    }

    pub(crate) fn state(&self, head: usize) -> PathBuf {
        self.place.path(&format!("state-{}", NAMES[head]))
    }

    pub(crate) fn log(&self, head: usize) -> String {
        fs::read_to_string(self.place.path(&format!("{}.log", NAMES[head]))).unwrap()
    }

    pub(crate) const fn port(&self, head: usize) -> u16 {
        self.ports[head]
    }

    pub(crate) fn signal(&self, head: usize, signal: Signal) {
        self.servers[head].as_ref().unwrap().signal(signal);
    }

    pub(crate) fn kill(&mut self, head: usize) {
        self.servers[head].take().unwrap().kill();
        let port = self.ports[head];
        wait_until("the port is free", || TcpListener::bind(("127.0.0.1", port)).is_ok());
    }

    pub(crate) fn stop(&mut self, head: usize) {
        assert!(self.servers[head].take().unwrap().stop().success());
    }

    /// Waits until a head does not take connections any more.
    pub(crate) fn wait_for_end(&self, head: usize) {
        let port = self.ports[head];
        wait_until("the head has ended", || TcpStream::connect(("127.0.0.1", port)).is_err());
    }

    pub(crate) fn file(&self, export: &str, name: &str) -> PathBuf {
        self.place.data().join(export).join(name)
    }

    pub(crate) fn client(&self, head: usize, name: &str) -> Four {
        Four::connect(self.ports[head], 0, name)
    }

    /// Asks a head.
    pub(crate) fn ask(&self, head: usize, arguments: &[&str]) -> Said {
        run(comity().args(arguments).arg("--state-dir").arg(self.state(head)))
    }

    /// Moves an export from a head to another one, which it names.
    pub(crate) fn move_export(&self, (from, to): (usize, usize), more: &[&str]) -> Said {
        let export = self.place.data().join("one");
        let arguments = ["cluster", "move", export.to_str().unwrap(), "--to", NAMES[to]];
        self.ask(from, &[&arguments, more].concat())
    }

    /// The metrics page of a head that was started with one.
    pub(crate) fn metrics(&self, head: usize) -> String {
        metrics(self.servers[head].as_ref().unwrap())
    }

    pub(crate) fn status(&self, head: usize) -> Value {
        let said = self.ask(head, &["cluster", "status", "--json"]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        serde_json::from_str(&said.out).unwrap()
    }
}
