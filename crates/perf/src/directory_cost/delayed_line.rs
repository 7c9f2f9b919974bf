//! A line to a server on which bytes take time, as if the server were far away.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use anyhow::Result;

/// Most bytes that are passed on together.
const PIECE_BYTES: usize = 64 << 10;

/// A listening socket whose connections lead to a server. Its threads end with their connections,
/// and the one that listens with the process.
pub(super) struct DelayedLine {
    address: SocketAddr,
}

impl DelayedLine {
    /// Listens at a free port; bytes take `delay` in each direction.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn start(server: SocketAddr, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(server) {
                    join(client, server, delay);
                }
            }
        });
        Ok(Self { address })
    }

    /// The address at which the server is reached.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }
}

fn join(client: TcpStream, server: TcpStream, delay: Duration) {
    let [_, _] = [&client, &server].map(|stream| stream.set_nodelay(true));
    let (Ok(back), Ok(forth)) = (client.try_clone(), server.try_clone()) else { return };
    pass_on(client, server, delay);
    pass_on(forth, back, delay);
}

/// Passes bytes on, each after the delay. Pieces that follow each other do not wait for each other.
fn pass_on(mut from: TcpStream, to: TcpStream, delay: Duration) {
    let (sender, receiver): (Sender<(Instant, Vec<u8>)>, _) = channel();
    thread::spawn(move || deliver(&receiver, to));
    thread::spawn(move || {
        let mut piece = vec![0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            let bytes = piece.get(..count).unwrap_or_default().to_vec();
            if sender.send((Instant::now() + delay, bytes)).is_err() {
                return;
            }
        }
    });
}

fn deliver(receiver: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, bytes) in receiver {
        sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_takes_twice_the_delay_and_is_unchanged() {
        let server = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let delay = Duration::from_millis(20);
        let line = DelayedLine::start(server.local_addr().unwrap(), delay).unwrap();
        let mut client = TcpStream::connect(line.address()).unwrap();
        let begun = Instant::now();
        client.write_all(b"question").unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let mut bytes = [0; 8];
        peer.read_exact(&mut bytes).unwrap();
        peer.write_all(&bytes).unwrap();
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"question");
        assert!(begun.elapsed() >= 2 * delay);
    }
}
