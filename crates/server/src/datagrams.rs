//! Small programs over UDP: each datagram is one call; the thread that receives it also answers it.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use comity_rpc::{Admission, Answered, Dispatcher, Gate};
use comity_xdr::Encoder;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use rustix::time::Timespec;

use crate::connection_io::log_refused;
use crate::limits::{
    DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MIN, DATAGRAMS_A_TURN, DATAGRAMS_BUFFER_BYTES,
    DATAGRAMS_STOP_MS, STRANGERS_A_TURN, STRANGERS_REST_MS,
};
use crate::log_rate_limit::LogRateLimit;

/// A thread that answers datagrams at one address.
pub struct Datagrams {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Datagrams {
    /// Answers datagrams at `address`; `visitor` makes the programs' data about a peer.
    ///
    /// # Errors
    /// If the socket cannot be opened.
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

    /// Stops the thread.
    pub fn shutdown(self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
    }
}

/// Opens a socket of the same address families as a listener at this address.
fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    use socket2::{Domain, Protocol, Socket, Type};
    let kind = Type::DGRAM.cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    // More than net.core.rmem_max takes a privilege; without it that much must do.
    set_socket_recv_buffer_size_force(&socket, DATAGRAMS_BUFFER_BYTES)
        .or_else(|_| set_socket_recv_buffer_size(&socket, DATAGRAMS_BUFFER_BYTES))?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// The thread's loop: it waits for datagrams and answers those that are there.
fn answer<V, G: Gate<V>>(
    socket: &UdpSocket,
    dispatcher: &Dispatcher<V, G>,
    visitor: &impl Fn(SocketAddr) -> V,
    stop: &AtomicBool,
) {
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let wait = Timespec { tv_sec: 0, tv_nsec: DATAGRAMS_STOP_MS as i64 * 1_000_000 };
    while !stop.load(Ordering::Relaxed) {
        let mut polled = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut polled, Some(&wait)) == Ok(0) {
            continue;
        }
        let mut answers_left = STRANGERS_A_TURN;
        let mut receive =
            || caught(|| receive(socket, (dispatcher, visitor), &mut buffer, &mut answers_left));
        let turn = (0..DATAGRAMS_A_TURN).map_while(|_| receive());
        if turn.fold(Sender::Listed, Sender::max) == Sender::Stranger {
            sleep(Duration::from_millis(STRANGERS_REST_MS));
        }
    }
}

/// The sender of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sender {
    /// A host to which some export is offered.
    Listed,
    /// A host to which no export is offered, or which is not known yet.
    Stranger,
}

/// A panic must not end the thread, because it is the only one. The call is lost, as a datagram may
/// be, and its sender retries.
fn caught(receive: impl FnOnce() -> Option<Sender>) -> Option<Sender> {
    catch_unwind(AssertUnwindSafe(receive)).unwrap_or_else(|_| {
        static LOG: LogRateLimit = LogRateLimit::new();
        LOG.say(|suppressed| tracing::error!(suppressed, "a call by datagram panicked"));
        Some(Sender::Stranger)
    })
}

/// Receives a datagram, if one is there, and answers it, unless it is from a stranger and no more
/// answers to strangers are allowed in this turn.
fn receive<V, G: Gate<V>>(
    socket: &UdpSocket,
    (dispatcher, visitor): (&Dispatcher<V, G>, &impl Fn(SocketAddr) -> V),
    buffer: &mut [u8],
    answers_left: &mut usize,
) -> Option<Sender> {
    let (length, peer) = socket.recv_from(buffer).ok()?;
    let visitor = visitor(peer);
    let sender = match dispatcher.admission(&visitor) {
        Admission::Admitted => Sender::Listed,
        Admission::Refused(_) | Admission::Undecided => Sender::Stranger,
    };
    if sender == Sender::Stranger {
        let Some(left) = answers_left.checked_sub(1) else { return Some(sender) };
        *answers_left = left;
    }
    let call = buffer.get(..length).filter(|call| call.len() >= DATAGRAM_BYTES_MIN);
    let mut reply = Encoder::new();
    match call.map(|call| dispatcher.answer(call, peer.ip(), &visitor, &mut reply)) {
        Some(Ok(Answered::Now)) => {}
        Some(Ok(Answered::Refused(refusal))) => {
            log_refused(peer, || dispatcher.refusal_reason(&visitor, refusal));
        }
        _ => return Some(sender),
    }
    // A datagram has no record mark.
    if let Some(datagram) = reply.bytes().get(4..) {
        let _ = socket.send_to(datagram, peer);
    }
    Some(sender)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_rpc::{
        AuthStat, Call, CallHeader, Done, OpaqueAuth, OpenGate, Outcome, Program, Repeat,
    };
    use std::ops::RangeInclusive;
    use std::time::Instant;

    /// A program that panics when procedure 1 is called.
    struct Fragile;

    impl Program<()> for Fragile {
        fn number(&self) -> u32 {
            7
        }

        fn versions(&self) -> RangeInclusive<u32> {
            1..=1
        }

        fn procedure_name(&self, _: u32, _: u32) -> &'static str {
            "ANY"
        }

        fn repeat(&self, _: u32, _: u32) -> Repeat {
            Repeat::Remember
        }

        fn call(&self, call: &Call<'_>, (): &(), _: &mut Encoder) -> Outcome {
            assert_ne!(call.header.procedure, 1, "the program panics on request");
            Outcome::Done(Done::default())
        }
    }

    fn call(xid: u32, procedure: u32) -> Vec<u8> {
        let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
        let mut encoder = Encoder::new();
        let (program, version) = (7, 1);
        encoder.value(&CallHeader { xid, program, version, procedure, credential, verifier });
        encoder.bytes().to_vec()
    }

    #[test]
    fn a_call_that_panics_does_not_end_the_service() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dispatcher = Dispatcher::new(vec![Arc::new(Fragile) as _], OpenGate);
        let datagrams = Datagrams::start(free, dispatcher, |_| ()).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        for xid in 0..3 {
            client.send_to(&call(xid, 1), free).unwrap();
            client.send_to(&call(100 + xid, 2), free).unwrap();
            let mut reply = [0; 64];
            client.recv(&mut reply).unwrap();
            assert_eq!(reply[..4], (100 + xid).to_be_bytes());
        }
        datagrams.shutdown();
    }

    /// A gate that refuses all peers.
    struct ShutGate;

    impl Gate<()> for ShutGate {
        fn admits(&self, (): &()) -> Admission {
            Admission::Refused(AuthStat::BadCred)
        }
    }

    #[test]
    fn the_thread_rests_between_turns_in_which_strangers_call() {
        let free = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let dispatcher = Dispatcher::new(vec![Arc::new(Fragile) as _], ShutGate);
        let datagrams = Datagrams::start(free, dispatcher, |_| ()).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        let started = Instant::now();
        for xid in 0..200 {
            client.send_to(&call(xid, 2), free).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut answered = started;
        let mut answers = 0;
        while client.recv(&mut [0; 64]).is_ok() {
            answers += 1;
            answered = Instant::now();
        }
        // The calls come in many turns, and each turn answers only a part of them.
        let rests = (answered - started).as_millis() as usize / STRANGERS_REST_MS as usize;
        assert!(answers >= STRANGERS_A_TURN, "{answers}");
        assert!(answers <= STRANGERS_A_TURN * (rests + 1), "{answers} answers, {rests} rests");
        datagrams.shutdown();
    }
}
