use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::source::Stage;

/// Strangers that hold connections open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowd {
    pub(super) connections: usize,
    /// Bytes that each stranger sends in a second, as parts of one record that never ends.
    pub(super) bytes_a_second: u32,
}

/// Time in which the server may refuse connections before the remaining ones are counted.
const REFUSALS: Duration = Duration::from_millis(500);

impl Crowd {
    /// Connects all strangers and keeps the connections that the server accepts. Returns their
    /// number.
    pub(super) fn gather(self, stage: &Stage) -> Result<f64> {
        let all: Result<Vec<_>> =
            (0..self.connections).map(|number| stage.connect(number)).collect();
        let mut crowd = all?;
        sleep(REFUSALS);
        crowd.retain(is_open);
        match self.bytes_a_second {
            0 => while_quiet(stage),
            bytes => drip(&crowd, stage, bytes),
        }
        Ok(crowd.len() as f64)
    }
}

/// Returns whether the server has left a silent connection open.
fn is_open(mut stream: &TcpStream) -> bool {
    let blocked = |stream: &mut &TcpStream| {
        stream.set_nonblocking(true)?;
        stream.read(&mut [0])
    };
    blocked(&mut stream).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

fn while_quiet(stage: &Stage) {
    stage.begin();
    while !stage.is_over() {
        sleep(Duration::from_millis(10));
    }
}

/// Sends the bytes of a record from each of `crowd`, evenly spread over each second. The
/// measurement begins once each of them has sent a byte: the row shows hosts that go on like that.
fn drip(crowd: &[TcpStream], stage: &Stage, bytes_a_second: u32) {
    // The mark of a record of 4096 bytes, of which only a few are sent.
    const RECORD: [u8; 64] = {
        let mut record = [0; 64];
        (record[0], record[2]) = (0x80, 0x10);
        record
    };
    let (started, mut sent) = (Instant::now(), 0);
    while !stage.is_over() && !crowd.is_empty() {
        let bytes = crowd.len() * bytes_a_second as usize;
        let due = (started.elapsed().as_secs_f64() * bytes as f64) as usize;
        for number in sent..due {
            let byte = RECORD[(number / crowd.len()) % RECORD.len()];
            // A connection that was closed meanwhile sends no more.
            let _ = (&crowd[number % crowd.len()]).write(&[byte]);
        }
        if sent < crowd.len() && due >= crowd.len() {
            stage.begin();
        }
        sent = due;
        sleep(Duration::from_millis(1));
    }
}
