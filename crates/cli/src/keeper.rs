//! What is remembered of clients of NFSv4, and the thread by which time passes for it.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use comity_nfs4::{Clock, Memory};
use comity_state::{Engine, Recovered, Settings};
use siphasher::sip::SipHasher24;

/// How often time passes: leases, recalls and waits end by the second.
const TICK: Duration = Duration::from_secs(1);

/// The memory, and who looks after it.
pub(crate) struct Keeper {
    memory: Memory,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Keeper {
    /// Begins with nothing. `life` is another in every life of the server; `key` is the same in all
    /// of them, and no other server's. Leases last `lease_seconds`.
    ///
    /// # Errors
    /// If there can be no thread.
    pub(crate) fn start(life: [u8; 8], key: &[u8; 16], lease_seconds: u32) -> Result<Self> {
        let [a, b, c, d, ..] = life;
        let lease = Duration::from_secs(lease_seconds.into());
        let usual = Settings::new(u32::from_be_bytes([a, b, c, d]));
        let settings = Settings { lease, grace: lease, ..usual };
        let clock = Clock::start();
        let engine = Arc::new(Engine::new(clock.now(), settings, Recovered::new()));
        let (stop, stopped) = mpsc::channel();
        let watched = Arc::clone(&engine);
        let keep = move || {
            while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                watched.tick(clock.now());
            }
        };
        let thread = thread::Builder::new().name("keeper".into()).spawn(keep);
        let thread = thread.context("cannot start the thread that watches over leases")?;
        let memory = Memory { engine, clock, identity: identity(key) };
        Ok(Self { memory, stop, thread })
    }

    /// What is remembered.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Time stands still.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It panics nowhere, and if it did the log has it.
        let _ = self.thread.join();
    }
}

/// The server's name to its clients. It tells nothing about the key.
fn identity(key: &[u8; 16]) -> Box<[u8]> {
    let name = SipHasher24::new_with_key(key).hash(b"server owner");
    format!("comity {name:016x}").into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_name_is_its_own_in_all_its_lives() {
        assert_eq!(identity(&[1; 16]), identity(&[1; 16]));
        assert_ne!(identity(&[1; 16]), identity(&[2; 16]));
    }
}
