//! Two servers of one folder between which it moves.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;
use rustix::process::Signal;
use serde_json::Value;

use crate::common::four::{Four, Opened};
use crate::common::whereabouts::fileid;
use crate::common::{Place, Running, Said, comity, run, wait_until};
use crate::proxy::Proxy;

/// Two servers of one folder, which the server `a` serves at first.
pub(crate) struct Pair {
    pub(crate) place: Place,
    pub(crate) servers: [Running; 2],
    /// The ports by which they call each other.
    pub(crate) ports: [u16; 2],
    lease: Duration,
}

pub(crate) const NAMES: [&str; 2] = ["a", "b"];

impl Pair {
    pub(crate) fn new() -> Self {
        Self::with_lease(Duration::from_secs(90))
    }

    pub(crate) fn with_lease(lease: Duration) -> Self {
        let place = Place::new();
        for name in NAMES {
            place.write(&format!("{name}.toml"), "");
        }
        let a = start(&place, "a", (0, lease));
        fs::create_dir(state(&place, "b")).unwrap();
        fs::copy(state(&place, "a").join("handle.key"), state(&place, "b").join("handle.key"))
            .unwrap();
        let b = start(&place, "b", (0, lease));
        let ports = [a.port, b.port];
        let pair = Self { place, servers: [a, b], ports, lease };
        pair.configure();
        pair
    }

    /// Has the server `a` call the server `b` through a proxy, which counts from now on.
    pub(crate) fn put_proxy_between(&mut self) -> Proxy {
        let proxy = Proxy::start(self.servers[1].port);
        self.ports[1] = proxy.port;
        self.configure();
        proxy.count();
        proxy
    }

    /// Has each server know the other, and serve the folder or refer to the server `a`.
    pub(crate) fn configure(&self) {
        for (own, other) in [(0, 1), (1, 0)] {
            let peer = &self.servers[other];
            let (name, data) = (NAMES[other], self.place.data());
            let (port, key) = (self.ports[other], peer.said["tls"]["key"].as_str().unwrap());
            let home = if own == 0 { "" } else { ", \"home=a\"" };
            let text = format!(
                "[[peer]]\nname = \"{name}\"\naddress = \"127.0.0.1:{port}\"\nkey = \"{key}\"\n\
                 [[export]]\npath = {data:?}\n\
                 options = [\"rw\", \"insecure\", \"no_root_squash\"{home}]\n\
                 clients = [{{ client = \"127.0.0.1\" }}]\n"
            );
            self.place.write(&format!("{}.toml", NAMES[own]), &text);
            let said = self.ask(own, &["reload"]);
            assert_eq!(said.code, Some(0), "{}", said.err);
        }
    }

    /// Asks a server of the pair.
    pub(crate) fn ask(&self, server: usize, arguments: &[&str]) -> Said {
        run(comity().args(arguments).arg("--state-dir").arg(state(&self.place, NAMES[server])))
    }

    pub(crate) fn migrate(&self, from: usize, more: &[&str]) -> Said {
        let data = self.place.data();
        let arguments = ["migrate", data.to_str().unwrap(), "--to", NAMES[1 - from]];
        self.ask(from, &[&arguments, more].concat())
    }

    pub(crate) fn restart(&mut self, server: usize) {
        let port = self.servers[server].port;
        self.servers[server].signal(Signal::KILL);
        wait_until("the port is free", || TcpListener::bind(("127.0.0.1", port)).is_ok());
        self.servers[server] = start(&self.place, NAMES[server], (port, self.lease));
    }

    /// Returns what a server has logged since it was started.
    pub(crate) fn log(&self, server: usize) -> String {
        fs::read_to_string(log(&self.place, NAMES[server])).unwrap()
    }

    /// The server that serves a file, once one of them does and the other refers to it.
    pub(crate) fn serving(&self, file: &Opened) -> usize {
        let mut serving = None;
        let mut lookers = self.servers.each_ref().map(|it| Four::follow(it.port, 0, "looker"));
        wait_until("one server serves", || {
            let answers = lookers.each_mut().map(|looker| fileid(looker, &file.handle));
            assert_ne!(answers, [Ok(()), Ok(())], "both serve");
            serving = answers.iter().position(Result::is_ok);
            serving.is_some() && answers.contains(&Err(Nfsstat4::Moved))
        });
        serving.unwrap()
    }

    /// The places of the folder in the table of a server, if it was moved at all.
    pub(crate) fn moved(&self, server: usize) -> Option<Value> {
        let table = fs::read(state(&self.place, NAMES[server]).join("moved")).ok()?;
        let table: Value = serde_json::from_slice(&table).unwrap();
        table["exports"].get(self.place.data().to_str().unwrap()).cloned()
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }

    pub(crate) fn client(&self, server: usize) -> Four {
        Four::connect(self.servers[server].port, 0, "client")
    }
}

pub(crate) fn state(place: &Place, name: &str) -> PathBuf {
    place.path(&format!("state-{name}"))
}

fn log(place: &Place, name: &str) -> PathBuf {
    place.path(&format!("{name}.log"))
}

fn start(place: &Place, name: &str, (port, lease): (u16, Duration)) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
    command.args(["--no-local-locks", "--port", &port.to_string()]);
    command.args(["--lease-seconds", &lease.as_secs().to_string()]);
    command.arg("--state-dir").arg(state(place, name));
    command.arg("--config").arg(place.path(&format!("{name}.toml")));
    Running::start_with_log(&mut command, File::create(log(place, name)).unwrap())
}
