//! Seeds of `Town`: runs of a server with its clients, and the clients' answers to callbacks.

use super::write;

/// A request of a client: the client, the file, the operation and its arguments.
fn ask(who: u8, file: u8, what: u8, how: &[u8]) -> Vec<u8> {
    [&[who, 11, file, what], how].concat()
}

/// A client is ready to be called back, and has nothing to reclaim.
fn ready(who: u8) -> Vec<u8> {
    [ask(who, 0, 14, &[]), answer(who)].concat()
}

/// A client answers as it should.
fn answer(who: u8) -> Vec<u8> {
    vec![who, 5, 0]
}

/// Opens a file for reading and writing, and makes it.
fn open(who: u8, file: u8) -> Vec<u8> {
    ask(who, file, 0, &[3, 0, 3])
}

const LOCK: u8 = 8;
const RESTART: [u8; 2] = [0, 2];
const MINUTES: [u8; 3] = [0, 0, 120];

pub(crate) fn all() -> std::io::Result<()> {
    let ready: Vec<u8> = (0..3).flat_map(ready).collect();
    let lock = |who, how| ask(who, 0, LOCK, &[how, 1, 0, 9]);
    let shared = [open(0, 0), open(1, 0), answer(0), ask(0, 0, 13, &[]), open(1, 0)].concat();
    let locks = [open(1, 0), lock(1, 2), open(2, 0), lock(2, 6), ask(1, 0, 12, &[0, 9])].concat();
    let lives = [
        ("shared", shared.clone()),
        ("locks", locks.clone()),
        ("restart", [&locks[..], &RESTART, &ask(1, 0, 3, &[3, 3, 0]), &lock(1, 0x82)].concat()),
        ("silence", [&shared[..], &MINUTES, &locks, &MINUTES, &open(0, 1)].concat()),
        ("reboot", [&shared[..], &[1, 3], &locks, &[2, 4], &locks].concat()),
        ("data", (0..8).flat_map(|what| ask(1, 1, 15, &[what, 0, 0, 99])).collect()),
    ];
    for (name, life) in lives {
        write("town", name, &[&ready[..], &life].concat())?;
    }
    let replies = [
        ("accepted", vec![0, 2, 0, 1, 2, 0, 2, 2, 0]),
        ("status", vec![0, 0x13, 8, 0, 0, 0, 4, 0, 0, 0, 7, 1, 0x27, 4, 0, 0, 0, 11]),
        ("nothing", vec![0, 0, 0, 1, 1, 0, 2, 0xf3, 0]),
    ];
    replies.iter().try_for_each(|(name, bytes)| write("callback", name, bytes))
}
