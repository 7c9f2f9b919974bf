//! A mount that uses several connections (`nconnect`), with and without TLS.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use common::wait_until;
use common::world::World;

/// The number of connections of the mount.
const CONNECTIONS: usize = 4;

/// Bytes of each file that is written.
const FILE_BYTES: usize = 4 << 20;

/// Forwards connections to a server, counts their bytes, and can close one of them.
#[derive(Clone, Default)]
struct Proxy(Arc<Mutex<Vec<Passed>>>);

struct Passed {
    socket: TcpStream,
    sent: Arc<AtomicU64>,
    is_open: Arc<()>,
}

impl Proxy {
    /// Starts the proxy; returns its port.
    fn start(&self, server: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, passed) = (listener.local_addr().unwrap().port(), Arc::clone(&self.0));
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, is_open) = (client.unwrap(), Arc::new(()));
                let Ok(upper) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let (sent, back) = (Arc::<AtomicU64>::default(), Arc::default());
                copy(&client, &upper, &sent, &is_open);
                copy(&upper, &client, &back, &is_open);
                passed.lock().unwrap().push(Passed { socket: client, sent, is_open });
            }
        });
        port
    }

    /// The bytes that the mount has sent over each open connection.
    fn sent(&self) -> Vec<u64> {
        let passed = self.0.lock().unwrap();
        let open = passed.iter().filter(|one| Arc::strong_count(&one.is_open) == 3);
        open.map(|one| one.sent.load(Ordering::Relaxed)).collect()
    }

    fn end_one(&self) {
        self.0.lock().unwrap()[1].socket.shutdown(Shutdown::Both).unwrap();
    }
}

fn copy(from: &TcpStream, to: &TcpStream, count: &Arc<AtomicU64>, is_open: &Arc<()>) {
    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
    let (count, is_open) = (Arc::clone(count), Arc::clone(is_open));
    thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length @ 1..) = from.read(&mut bytes) {
            count.fetch_add(length as u64, Ordering::Relaxed);
            if to.write_all(&bytes[..length]).is_err() {
                break;
            }
        }
        // The other side may have ended already.
        let _ = to.shutdown(Shutdown::Both);
        drop(is_open);
    });
}

/// A mounted server, and a proxy in front of it.
struct Proxied {
    world: World,
    proxy: Proxy,
}

impl Proxied {
    fn mounted(options: &str) -> Option<Self> {
        let world = World::exporting("rw,insecure,no_root_squash", &[])?;
        let proxy = Proxy::default();
        let mut mount = world.comity("mount");
        mount.env("XDG_CONFIG_HOME", world.place.path("user"));
        let options = format!("nodc_enable,nconnect={CONNECTIONS}{options}");
        let said = world.mount_by(mount, proxy.start(world.port), &options);
        assert_eq!(said.code, Some(0), "{}", said.err);
        Some(Self { world, proxy })
    }

    /// Writes files at the same time; every call must succeed.
    fn write_files(&self, round: u8) {
        let write = |number: u8| {
            let mut file = File::create(self.world.dir.join(number.to_string())).unwrap();
            for part in vec![round + number; FILE_BYTES].chunks(1 << 16) {
                file.write_all(part).unwrap();
            }
            file.sync_all().unwrap();
        };
        thread::scope(|scope| (0..8).for_each(|number| drop(scope.spawn(move || write(number)))));
        for number in 0..8 {
            let seen = fs::read(self.world.place.data().join(number.to_string())).unwrap();
            assert!(seen == vec![round + number; FILE_BYTES], "file {number} of round {round}");
        }
    }
}

fn calls_are_spread_and_none_fails_with_a_lost_connection(options: &str) {
    let Some(world) = Proxied::mounted(options) else { return };
    wait_until("all connections are there", || world.proxy.sent().len() == CONNECTIONS);
    world.write_files(0);
    let sent = world.proxy.sent();
    assert!(sent.iter().all(|sent| *sent > 1 << 20), "each carries data: {sent:?}");
    thread::scope(|scope| {
        let writing = scope.spawn(|| world.write_files(100));
        wait_until("writing has begun", || world.proxy.sent().iter().sum::<u64>() > 40 << 20);
        world.proxy.end_one();
        writing.join().unwrap();
    });
    wait_until("the lost connection is replaced", || world.proxy.sent().len() == CONNECTIONS);
}

#[test]
fn calls_are_spread_over_plain_connections_and_none_fails_with_a_lost_one() {
    calls_are_spread_and_none_fails_with_a_lost_connection("");
}

#[test]
fn calls_are_spread_over_tls_connections_and_none_fails_with_a_lost_one() {
    calls_are_spread_and_none_fails_with_a_lost_connection(",xprtsec=tls");
}
