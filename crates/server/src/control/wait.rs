//! Waiting for the answer at a control socket, and the signs of life that shorten the wait for a
//! program that hangs.
//!
//! While a program performs a request, or lets it wait for its turn, it sends a blank each second.
//! JSON ignores blanks in front of an answer, so that programs of other versions understand it.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::AskError;
use crate::limits::CONTROL_PULSE_SECONDS;

/// The longest times that a command waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerLimits {
    /// Most seconds without a byte.
    pub(super) silence: u64,
    /// Most seconds until the answer is complete.
    pub(super) whole: u64,
}

impl AnswerLimits {
    /// Returns the most seconds until the first byte.
    pub(super) fn first(self) -> u64 {
        self.silence.min(self.whole)
    }

    /// Reads an answer: a line, or what came before the connection was closed.
    pub(super) fn answer(self, mut stream: &UnixStream) -> Result<Vec<u8>, AskError> {
        let until = Instant::now() + Duration::from_secs(self.whole);
        let (mut answer, mut bytes) = (Vec::new(), [0; 4096]);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.over(!answer.is_empty()));
            }
            let silence = Duration::from_secs(self.silence);
            stream.set_read_timeout(Some(left.min(silence))).map_err(AskError::Broken)?;
            match stream.read(&mut bytes) {
                Ok(length) => {
                    let read = bytes.get(..length).unwrap_or_default();
                    answer.extend_from_slice(read);
                    if length == 0 || read.ends_with(b"\n") {
                        return Ok(answer);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Err(AskError::Broken(error));
                }
                Err(_) if Instant::now() < until => return Err(AskError::Silent(self.silence)),
                Err(_) => {}
            }
        }
    }

    fn over(self, is_alive: bool) -> AskError {
        match is_alive {
            true => AskError::Busy(self.whole),
            false => AskError::Silent(self.whole),
        }
    }
}

/// Does `work`; meanwhile the peer gets a sign of life each second.
pub(super) fn with_pulse<T>(stream: &UnixStream, work: impl FnOnce() -> T) -> T {
    let (done, ended) = mpsc::channel::<()>();
    let pause = Duration::from_secs(CONTROL_PULSE_SECONDS);
    let beat = move || {
        while ended.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
            let mut peer = stream;
            if peer.write_all(b" ").is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let pulse = thread::Builder::new().name("control pulse".to_owned());
        if let Err(error) = pulse.spawn_scoped(scope, beat) {
            tracing::warn!(%error, "no thread for signs of life: a command may give up sooner");
        }
        let result = work();
        drop(done);
        result
    })
}
