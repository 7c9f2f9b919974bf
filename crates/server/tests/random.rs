//! Random calls in a stream that is cut at random places: each call gets one correct reply, and no
//! memory is held afterwards.
#![allow(clippy::unwrap_used)]

mod toy;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_server::{Server, Settings};
use comity_vfs::SplitMix64;
use toy::{Client, Shared, ToyService, eventually, opaque, record, settings, start};

const CALLS: u32 = 200;
const FILE_BYTES: usize = 700_000;

/// A random number generator; a seed gives the same numbers each time.
struct Rng(SplitMix64);

impl Rng {
    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    /// A random size: usually small, sometimes near the limits, sometimes large.
    fn size(&mut self) -> usize {
        match self.below(12) {
            0..7 => self.below(300),
            7 | 8 => 16_384 - 60 + self.below(120),
            9 => 65_536 - 60 + self.below(120),
            10 => self.below(200_000),
            _ => self.below(1 << 20),
        }
    }
}

/// A call, and the results that it must have; `None` allows any.
struct Asked {
    bytes: Vec<u8>,
    results: Option<Vec<u8>>,
}

fn ask(rng: &mut Rng, xid: u32, pattern: &[u8]) -> Asked {
    let size = rng.size() & !3;
    let number = (size as u32).to_be_bytes();
    let (procedure, arguments, results) = match rng.below(9) {
        0..4 => {
            let data = opaque(&pattern[xid as usize..xid as usize + size]);
            (toy::ECHO, data.clone(), Some(data))
        }
        4 | 5 => (toy::ZEROS, number.to_vec(), Some(vec![0; size])),
        6 => {
            let mut bytes = pattern[..size.min(FILE_BYTES)].to_vec();
            bytes.resize(size, 0);
            (toy::FILE, number.to_vec(), Some(bytes))
        }
        7 if rng.below(3) == 0 => (toy::SLEEP, 3_u32.to_be_bytes().to_vec(), Some(Vec::new())),
        7 => (toy::NULL, Vec::new(), Some(Vec::new())),
        _ => (toy::DEFER, Vec::new(), None),
    };
    Asked { bytes: record(xid, procedure, &arguments), results }
}

/// Cuts some records into fragments.
fn fragmented(rng: &mut Rng, whole: Vec<u8>) -> Vec<u8> {
    if rng.below(4) > 0 {
        return whole;
    }
    let size = (whole.len() / (1 + rng.below(20))).max(4);
    let pieces: Vec<&[u8]> = whole[4..].chunks(size).collect();
    let last = pieces.len() - 1;
    let mark = |at: usize, length: usize| length as u32 | u32::from(at == last) << 31;
    let mut stream = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        stream.extend(mark(at, piece.len()).to_be_bytes());
        stream.extend_from_slice(piece);
    }
    stream
}

fn talk(server: &Server<ToyService>, seed: u64, pattern: &[u8]) {
    let mut rng = Rng(SplitMix64::new(seed));
    let asked: Vec<Asked> = (0..CALLS).map(|xid| ask(&mut rng, xid, pattern)).collect();
    let mut stream = Vec::new();
    for asked in &asked {
        stream.extend_from_slice(&fragmented(&mut rng, asked.bytes.clone()));
    }
    let mut client = Client::new(server);
    let mut sender = client.0.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(1 + rng.size()));
                sender.write_all(now).unwrap();
                if rng.below(20) == 0 {
                    std::thread::sleep(Duration::from_micros(rng.below(2000) as u64));
                }
                rest = later;
            }
        });
        // Every other client leaves its replies unread until they fill all buffers.
        let deadline = Instant::now() + Duration::from_secs(2 * (seed % 2));
        while server.stats().backlogs == 0 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut wanted: BTreeMap<u32, Asked> = (0..).zip(asked).collect();
        while !wanted.is_empty() {
            let reply = client.reply();
            let asked = wanted.remove(&reply.xid).unwrap();
            assert_eq!(reply.status, 0);
            if let Some(results) = asked.results {
                assert!(reply.results == results, "seed {seed}, call {}: wrong", reply.xid);
            }
        }
    });
}

#[test]
fn random_calls_in_random_pieces_get_correct_replies() {
    let pattern: Vec<u8> = (0..1_100_000).map(|n: u32| (n % 239) as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&pattern[..FILE_BYTES]).unwrap();
    for round in 0..4 {
        let shared =
            Shared { file: Some(Arc::new(file.try_clone().unwrap())), ..Shared::default() };
        let event_loops = 1 + round % 2;
        // The limit leaves room for a large record or unread replies of each of six clients, and
        // little more: all of them have one address, which may use half of the memory.
        let settings = Settings { event_loops, buffered_bytes_max: 18 << 20, ..settings() };
        let server = start(&Arc::new(shared), settings);
        std::thread::scope(|scope| {
            for talker in 0..6 {
                let (server, pattern) = (&server, &pattern);
                scope.spawn(move || talk(server, (100 * round + talker) as u64, pattern));
            }
        });
        eventually("nothing is held", || server.stats().buffered_bytes == 0);
        let numbers = server.stats();
        println!("{numbers:?}");
        assert_eq!(numbers.panics, 0);
        assert!(numbers.backlogs > 0 && numbers.lates > 0, "the calls did not reach the limits");
        assert!(server.shutdown());
    }
}
