//! A proxy between the servers of a pair.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// A proxy in front of a server, which ends connections after a number of bytes, or passes nothing
/// more.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    budget: Arc<Budget>,
}

struct Budget {
    left: AtomicU64,
    /// True if connections stay open when nothing is left.
    stalls: AtomicBool,
}

impl Proxy {
    pub(crate) fn start(to: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let budget = Budget { left: AtomicU64::new(u64::MAX), stalls: AtomicBool::new(false) };
        let budget = Arc::new(budget);
        let shared = Arc::clone(&budget);
        thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                // A server that was killed refuses connections.
                let Ok(far) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let budget = Arc::clone(&shared);
                    thread::spawn(move || pass_on(from, to, &budget));
                }
            }
        });
        Self { port, budget }
    }

    pub(crate) fn cut_after(&self, bytes: u64) {
        self.budget.stalls.store(false, Ordering::SeqCst);
        self.budget.left.store(bytes, Ordering::SeqCst);
    }

    /// Keeps connections open after this number of bytes, and passes no more.
    pub(crate) fn stall_after(&self, bytes: u64) {
        self.cut_after(bytes);
        self.budget.stalls.store(true, Ordering::SeqCst);
    }

    /// Begins to count the bytes that pass, of which none are held back any more.
    pub(crate) fn count(&self) {
        self.cut_after(u64::MAX);
    }

    /// Returns the number of bytes that have passed since [`Self::count`].
    pub(crate) fn passed(&self) -> u64 {
        u64::MAX - self.budget.left.load(Ordering::SeqCst)
    }
}

/// Passes bytes on until the budget of both directions is used up.
fn pass_on(mut from: TcpStream, mut to: TcpStream, budget: &Budget) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        let take = |left: u64| Some(left - left.min(count as u64));
        let left = budget.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).unwrap();
        let passed = left.min(count as u64) as usize;
        let is_written = to.write_all(&bytes[..passed]).is_ok();
        if passed < count && budget.stalls.load(Ordering::SeqCst) {
            thread::park();
        }
        if !is_written || passed < count {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
