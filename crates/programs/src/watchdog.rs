//! A bound of the whole time that a peer may take.

use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Ends a connection after a time, unless the watchdog is dropped first. A time limit for each read
/// is not enough: a peer that sends a byte now and then never exceeds it.
pub(crate) struct Watchdog {
    has_ended: Arc<AtomicBool>,
    _kept: Sender<()>,
}

impl Watchdog {
    /// Begins to wait.
    ///
    /// # Errors
    /// The system supplies no second descriptor or no thread.
    pub(crate) fn start(socket: &TcpStream, patience: Duration) -> io::Result<Self> {
        let (socket, has_ended) = (socket.try_clone()?, Arc::new(AtomicBool::new(false)));
        let (_kept, dropped) = channel();
        let ended = Arc::clone(&has_ended);
        thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
            if dropped.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
                ended.store(true, Ordering::Release);
                // The peer may have ended the connection already.
                let _ = socket.shutdown(Shutdown::Both);
            }
        })?;
        Ok(Self { has_ended, _kept })
    }

    /// Returns whether the connection was ended because the time was over.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }
}
