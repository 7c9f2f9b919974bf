//! `comity migrate`: an export moves between two servers with the state of its clients.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use comity_proto::nfs4::{
    Bitmap4, Fattr4, FsLocations4, NfsLockType4, Nfsstat4, Stateid4, attribute, operation as op,
    share,
};
use comity_xdr::Decoder;
use common::four::{Four, Opened, operation, result, skip};
use common::placed::on;
use common::{PATIENCE, Place, Running, Said, comity, run, wait_until};
use rustix::process::Signal;

/// Two servers of one folder, which the server `a` serves at first.
struct Pair {
    place: Place,
    servers: [Running; 2],
    /// The ports by which they call each other.
    ports: [u16; 2],
}

const NAMES: [&str; 2] = ["a", "b"];

impl Pair {
    fn new() -> Self {
        let place = Place::new();
        for name in NAMES {
            place.write(&format!("{name}.toml"), "");
        }
        let a = start(&place, "a", 0);
        fs::create_dir(state(&place, "b")).unwrap();
        fs::copy(state(&place, "a").join("handle.key"), state(&place, "b").join("handle.key"))
            .unwrap();
        let b = start(&place, "b", 0);
        let ports = [a.port, b.port];
        let pair = Self { place, servers: [a, b], ports };
        pair.configure();
        pair
    }

    /// Has each server know the other, and serve the folder or refer to the server `a`.
    fn configure(&self) {
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
    fn ask(&self, server: usize, arguments: &[&str]) -> Said {
        run(comity().args(arguments).arg("--state-dir").arg(state(&self.place, NAMES[server])))
    }

    fn migrate(&self, from: usize, more: &[&str]) -> Said {
        let data = self.place.data();
        let arguments = ["migrate", data.to_str().unwrap(), "--to", NAMES[1 - from]];
        self.ask(from, &[&arguments, more].concat())
    }

    fn restart(&mut self, server: usize) {
        let port = self.servers[server].port;
        self.servers[server].signal(Signal::KILL);
        wait_until("the port is free", || TcpListener::bind(("127.0.0.1", port)).is_ok());
        self.servers[server] = start(&self.place, NAMES[server], port);
    }

    /// The server that serves a file, once one of them does and the other refers to it.
    fn serving(&self, file: &Opened) -> usize {
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

    fn file(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }

    fn client(&self, server: usize) -> Four {
        Four::connect(self.servers[server].port, 0, "client")
    }
}

fn state(place: &Place, name: &str) -> PathBuf {
    place.path(&format!("state-{name}"))
}

fn start(place: &Place, name: &str, port: u16) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
    command.args(["--no-local-locks", "--port", &port.to_string()]);
    command.arg("--state-dir").arg(state(place, name));
    Running::start(command.arg("--config").arg(place.path(&format!("{name}.toml"))))
}

/// A proxy in front of a server, which ends connections after a number of bytes.
struct Proxy {
    port: u16,
    left: Arc<AtomicU64>,
}

impl Proxy {
    fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, left) =
            (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(u64::MAX)));
        let budget = Arc::clone(&left);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                let far = TcpStream::connect(("127.0.0.1", to)).unwrap();
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let budget = Arc::clone(&budget);
                    thread::spawn(move || pass_on(from, to, &budget));
                }
            }
        });
        Self { port, left }
    }

    fn cut_after(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }
}

/// Passes bytes on until the budget of both directions is used up.
fn pass_on(mut from: TcpStream, mut to: TcpStream, budget: &AtomicU64) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let take = |left: u64| Some(left - left.min(count as u64));
        let left = budget.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).unwrap();
        let passed = left.min(count as u64) as usize;
        if to.write_all(&bytes[..passed]).is_err() || passed < count {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// The server that a client is referred to when it asks for the locations of a handle.
fn location(client: &mut Four, handle: &[u8]) -> Option<String> {
    let wanted = Bitmap4::of(&[attribute::FS_LOCATIONS]);
    let results = client.perform(on(handle, operation(op::GETATTR, &wanted))).unwrap();
    let mut results = Decoder::new(&results);
    skip(&mut results);
    let attributes: Fattr4<'_> = result(&mut results);
    let locations: FsLocations4<'_> = Decoder::new(attributes.attr_vals.0).value().unwrap();
    let server = locations.locations.0.first()?.server.0.first()?;
    Some(String::from_utf8(server.0.to_vec()).unwrap())
}

/// Asks for the file number by a handle.
fn fileid(client: &mut Four, handle: &[u8]) -> Result<(), Nfsstat4> {
    let wanted = Bitmap4::of(&[attribute::FILEID]);
    client.perform(on(handle, operation(op::GETATTR, &wanted))).map(drop)
}

/// Another client's try to lock the bytes that the first one has locked.
fn conflict(client: &mut Four, path: &Path) -> Nfsstat4 {
    let file = client.open(path, share::READ | share::WRITE | share::WANT_NO_DELEG).unwrap();
    client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap_err()
}

/// Has another client open a file that is delegated, and returns the delegation.
fn recalled(
    client: &mut Four,
    (file, delegation): (&Opened, Stateid4),
    other: &mut Four,
    path: &Path,
) {
    let refused = other.open(path, share::READ | share::WRITE).unwrap_err();
    assert_eq!(refused, Nfsstat4::Delay);
    assert!(client.listen(PATIENCE, |client| !client.recalled.is_empty()));
    assert_eq!(client.recalled[0].other, delegation.other);
    client.give_back(file, delegation).unwrap();
}

fn used(client: &mut Four, (file, lock): (&Opened, Stateid4)) -> Stateid4 {
    client.change(file, file.stateid).unwrap();
    client.unlock(file, lock, (5, 1)).unwrap()
}

#[test]
fn opens_locks_and_delegations_are_good_at_the_other_server_and_back_again() {
    let pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    let mut lock = client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let (clientid, mut delegation) = (client.clientid, file.delegation);
    assert!(delegation.is_some());
    for from in [0, 1] {
        let said = pair.migrate(from, &[]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        assert!(said.out.starts_with(&format!(
            "moved to {} with {} client",
            NAMES[1 - from],
            from + 1
        )));
        assert_eq!(fileid(&mut client, &file.handle), Err(Nfsstat4::Moved));
        assert_eq!(location(&mut client, &file.handle).as_deref(), Some("127.0.0.1"));
        client = Four::follow(pair.servers[1 - from].port, 0, "client");
        assert_eq!(client.clientid, clientid, "the target knows the client");
        lock = used(&mut client, (&file, lock));
        let name = format!("other {from}");
        let mut other = Four::connect(pair.servers[1 - from].port, 0, &name);
        if let Some(delegation) = delegation.take() {
            recalled(&mut client, (&file, delegation), &mut other, &pair.file("f"));
        }
        assert_eq!(conflict(&mut other, &pair.file("f")), Nfsstat4::Denied);
    }
    client.unlock(&file, lock, (0, 10)).unwrap();
}

#[test]
fn a_dry_run_moves_nothing() {
    let pair = Pair::new();
    let said = pair.migrate(0, &["--dry-run"]);
    assert_eq!((said.code, &*said.err), (Some(0), ""));
    assert!(said.out.starts_with("b can take these exports"), "{}", said.out);
    let mut client = pair.client(0);
    client.open(&pair.file("f"), share::WRITE).unwrap();
}

#[test]
fn reasons_against_a_move_are_told() {
    let pair = Pair::new();
    for (arguments, reason) in [
        (["migrate", "/nowhere", "--to", "b"], "no export has the path /nowhere"),
        (["migrate", pair.place.data().to_str().unwrap(), "--to", "c"], "has no [[peer]] c"),
    ] {
        let said = pair.ask(0, &arguments);
        assert_eq!(said.code, Some(1));
        assert!(said.err.contains(reason), "{}", said.err);
    }
    let said = pair.migrate(1, &[]);
    assert!(said.err.contains("is not served here"), "{}", said.err);
}

#[test]
fn the_place_of_an_export_is_kept_over_restarts() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    for server in [0, 1] {
        pair.restart(server);
    }
    let mut client = pair.client(0);
    assert_eq!(fileid(&mut client, &file.handle), Err(Nfsstat4::Moved));
    let mut client = pair.client(1);
    fileid(&mut client, &file.handle).unwrap();
    let said = pair.ask(1, &["status"]);
    assert!(said.out.contains("is here"), "{}", said.out);
}

/// The connection between the servers ends after many numbers of bytes, and after each few of the
/// last ones, among which the call and the answer are that decide.
#[test]
fn one_server_serves_an_export_wherever_the_connection_between_them_ends() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    let file = client.open(&pair.file("f"), share::READ | share::WRITE | share::WANT_NO_DELEG);
    let file = file.unwrap();
    let mut lock = client.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    let proxy = Proxy::start(pair.servers[1].port);
    pair.ports[1] = proxy.port;
    pair.configure();
    proxy.cut_after(u64::MAX);
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let at_b = Four::follow(pair.servers[1].port, 0, "client");
    assert_eq!(pair.migrate(1, &[]).code, Some(0));
    // From now on the client has a session at each server, and its state keeps its length.
    let mut clients = [client, at_b];
    proxy.cut_after(u64::MAX);
    assert_eq!(pair.migrate(0, &[]).code, Some(0));
    let whole = u64::MAX - proxy.left.load(Ordering::SeqCst);
    assert_eq!(pair.migrate(1, &[]).code, Some(0));
    let early = (500..whole - 600).step_by(500);
    let mut unanswered = 0;
    for bytes in early.chain((whole - 600..whole).step_by(25)) {
        proxy.cut_after(bytes);
        let said = pair.migrate(0, &[]);
        assert_eq!(said.code, Some(1), "it ends with an error: {}", said.out);
        let again = pair.migrate(0, &[]);
        assert_eq!(again.code, Some(1), "the target cannot be reached");
        unanswered += usize::from(again.err.contains("on its way to another server"));
        proxy.cut_after(u64::MAX);
        let now = pair.serving(&file);
        lock = used(&mut clients[now], (&file, lock));
        if now == 1 {
            assert_eq!(pair.migrate(1, &[]).code, Some(0));
        }
    }
    assert!(unanswered > 2, "the answer to TAKE was lost {unanswered} times");
    clients[0].unlock(&file, lock, (0, 10)).unwrap();
}
