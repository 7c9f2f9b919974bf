use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::duty::Duty;

/// Bytes of a datagram: it fits in one packet of Ethernet.
const DATAGRAM_BYTES: usize = 1400;
/// Datagrams that are sent together.
const BURST: u64 = 16;

/// Sends datagrams to an address so that they fill a part of a line of `bits_per_second`. Nobody
/// needs to receive them. Returns the number of those that were sent.
///
/// # Errors
/// The address cannot be reached.
pub(super) fn consume(duty: Duty, to: SocketAddr, bits_per_second: f64) -> Result<u64> {
    let from: SocketAddr =
        if to.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(from).context("open a socket")?;
    socket.send_to(&[0; DATAGRAM_BYTES], to).with_context(|| format!("reach {to}"))?;
    let wanted = bits_per_second * duty.level / (8 * DATAGRAM_BYTES) as f64;
    let (started, mut tried, mut sent) = (Instant::now(), 1, 1);
    while started.elapsed() < duty.time {
        let due = (started.elapsed().as_secs_f64() * wanted) as u64;
        if tried >= due {
            std::thread::sleep(Duration::from_millis(1));
        }
        for _ in 0..BURST.min(due.saturating_sub(tried)) {
            // A full queue is not an error. The socket is not connected: one that is sends nothing
            // when it reports that the port at the other end is closed.
            sent += u64::from(socket.send_to(&[0; DATAGRAM_BYTES], to).is_ok());
            tried += 1;
        }
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only every second datagram was sent to a port that is closed.
    #[test]
    fn a_port_that_is_closed_takes_as_many_datagrams() {
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let duty = Duty { level: 1.0, time: Duration::from_millis(300) };
        let sent = consume(duty, closed, (1000 * 8 * DATAGRAM_BYTES) as f64).unwrap();
        assert!(sent >= 250, "{sent} of 300");
    }

    #[test]
    fn datagrams_fill_the_part_of_the_line() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_nonblocking(true).unwrap();
        let duty = Duty { level: 0.5, time: Duration::from_millis(300) };
        // 100 datagrams a second would fill the line: half of them for 0.3 seconds are 15.
        consume(duty, receiver.local_addr().unwrap(), (100 * 8 * DATAGRAM_BYTES) as f64).unwrap();
        let received = std::iter::from_fn(|| receiver.recv(&mut [0; DATAGRAM_BYTES]).ok()).count();
        assert!((10..=15).contains(&received), "{received}");
    }
}
