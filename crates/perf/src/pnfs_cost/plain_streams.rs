//! Bytes over plain TCP connections to the ends of lines: what the lines carry by themselves.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::byte_count::ByteCount;
use super::lines::LimitedLine;

/// Bytes that are sent or received at once.
const PIECE_BYTES: usize = 1 << 20;
/// The port of the senders and receivers at the ends of lines.
const PORT: u16 = 9;
/// Longest silence of a peer.
const SILENCE: Duration = Duration::from_secs(5);

/// Listeners at the ends of lines. A connection begins with a byte that says in which direction
/// bytes go.
pub(super) struct PlainStreams {
    addresses: Vec<SocketAddr>,
}

/// The direction of bytes, seen from this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineDirection {
    Read,
    Write,
}

impl PlainStreams {
    /// Starts a listener at the end of each line. Their threads end with the process.
    ///
    /// # Errors
    /// A namespace cannot be entered.
    pub(super) fn start(lines: &[LimitedLine]) -> Result<Self> {
        let mut addresses = Vec::new();
        for line in lines {
            let address = SocketAddr::new(line.there(), PORT);
            let listener = line.inside(move || TcpListener::bind(address).context("bind"))?;
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    thread::spawn(move || serve(stream));
                }
            });
            addresses.push(address);
        }
        Ok(Self { addresses })
    }

    /// Returns the bytes a second that the first `count` lines carry together.
    ///
    /// # Errors
    /// A connection fails.
    pub(super) fn rate(&self, count: usize, direction: LineDirection) -> Result<f64> {
        let moved = Arc::new(ByteCount::default());
        thread::scope(|scope| {
            for address in &self.addresses[..count] {
                let moved = Arc::clone(&moved);
                scope.spawn(move || {
                    let done = stream(*address, direction, &moved);
                    moved.end_if_failed(done);
                });
            }
            moved.measure()
        })
    }
}

fn stream(address: SocketAddr, direction: LineDirection, moved: &ByteCount) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.write_all(&[u8::from(direction == LineDirection::Read)])?;
    let mut piece = vec![0; PIECE_BYTES];
    while !moved.is_over() {
        match direction {
            LineDirection::Read => moved.add(stream.read(&mut piece)?),
            LineDirection::Write => moved.add(stream.write(&piece)?),
        }
    }
    Ok(())
}

/// Sends zeros, or receives what comes, until the other side closes the connection.
fn serve(mut stream: TcpStream) {
    let mut piece = vec![0; PIECE_BYTES];
    let mut sends = [0];
    if stream.read_exact(&mut sends).is_err() {
        return;
    }
    if sends == [1] {
        while stream.write_all(&piece).is_ok() {}
    } else {
        while matches!(stream.read(&mut piece), Ok(1..)) {}
    }
}
