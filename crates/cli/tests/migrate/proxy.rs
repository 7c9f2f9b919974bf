//! A proxy between the servers of a pair.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A proxy in front of a server, which ends connections after a number of bytes.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    left: Arc<AtomicU64>,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, left) =
            (listener.local_addr().unwrap().port(), Arc::new(AtomicU64::new(u64::MAX)));
        let budget = Arc::clone(&left);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // A server that was killed refuses connections.
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let budget = Arc::clone(&budget);
                    thread::spawn(move || pass_on(from, to, &budget));
                }
            }
        });
        Self { port, left }
    }

    pub(crate) fn cut_after(&self, bytes: u64) {
        self.left.store(bytes, Ordering::SeqCst);
    }

    /// Begins to count the bytes that pass, of which none are held back any more.
    pub(crate) fn count(&self) {
        self.cut_after(u64::MAX);
    }

    /// Returns the number of bytes that have passed since [`Self::count`].
    pub(crate) fn passed(&self) -> u64 {
        u64::MAX - self.left.load(Ordering::SeqCst)
    }
}

/// Passes bytes on until the budget of both directions is used up.
fn pass_on(mut from: TcpStream, mut to: TcpStream, budget: &AtomicU64) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let take = |left: u64| Some(left - left.min(count as u64));
        let left = budget.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).unwrap();
        let passed = left.min(count as u64) as usize;
        if to.write_all(&bytes[..passed]).is_err() || passed < count {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
