//! Small programs over UDP: each datagram is one call, answered by the thread that received it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_rpc::{Answered, Dispatcher, Gate};
use comity_xdr::Encoder;

use crate::limits::{DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, DATAGRAMS_STOP_MS};
use crate::turn::tell_refused;

/// A thread that answers at one address.
pub struct Datagrams {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Datagrams {
    /// Answers at `address`; `visitor` says who a peer is to the programs.
    ///
    /// # Errors
    /// If it cannot be listened there.
    pub fn start<V: 'static, G: Gate<V> + 'static>(
        address: SocketAddr,
        dispatcher: Dispatcher<V, G>,
        visitor: impl Fn(SocketAddr) -> V + Send + 'static,
    ) -> io::Result<Self> {
        let socket = udp(address)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopping = Arc::clone(&stop);
        let answer = move || answer(&socket, &dispatcher, &visitor, &stopping);
        let thread = std::thread::Builder::new().name("datagrams".into()).spawn(answer)?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    pub fn shutdown(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// A socket of the same families as a listener's at this address.
fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    use socket2::{Domain, Protocol, Socket, Type};
    let kind = Type::DGRAM.cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_read_timeout(Some(Duration::from_millis(DATAGRAMS_STOP_MS)))?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn answer<V, G: Gate<V>>(
    socket: &UdpSocket,
    dispatcher: &Dispatcher<V, G>,
    visitor: &impl Fn(SocketAddr) -> V,
    stop: &AtomicBool,
) {
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let mut reply = Encoder::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        if length < DATAGRAM_BYTES_MIN {
            continue;
        }
        reply.clear(DATAGRAM_BYTES_MAX);
        let answered = dispatcher.answer(&buffer[..length], peer.ip(), &visitor(peer), &mut reply);
        let is_answered = match answered {
            Ok(Answered::Now) => true,
            Ok(Answered::Refused(why)) => {
                tell_refused(peer, why);
                true
            }
            _ => false,
        };
        // A datagram has no record mark.
        if let (true, Some(datagram)) = (is_answered, reply.bytes().get(4..)) {
            let _ = socket.send_to(datagram, peer);
        }
    }
}
