use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::process;
use socket2::{Domain, Socket, Type};

use super::Behavior;
use crate::limits::STRANGERS_START_SECONDS_MAX;
use crate::server_process::LOAD_PROCESSOR;

/// Number of unlisted addresses: 127.0.0.2, 127.0.0.3 and so on.
const ADDRESSES: u8 = 16;

/// Strangers at work on a thread of their own.
pub(super) struct Strangers {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<f64>>,
}

/// Shared by a stranger and the measuring thread.
pub(super) struct Stage {
    pub(super) server: SocketAddr,
    stop: Arc<AtomicBool>,
    ready: Sender<()>,
}

impl Strangers {
    /// Starts the strangers, and waits until all of them are connected.
    pub(super) fn begin(server: SocketAddr, behavior: Behavior) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (ready, is_ready) = channel();
        let stage = Stage { server, stop: Arc::clone(&stop), ready };
        let thread = std::thread::spawn(move || {
            process::pin(None, &[LOAD_PROCESSOR])?;
            match behavior {
                Behavior::Nothing => stage.wait(),
                Behavior::Crowd(crowd) => crowd.gather(&stage),
                Behavior::Elsewhere(crowd) => crowd.gather(&stage.elsewhere(crowd.connections)?),
                Behavior::Flood(flood) => flood.pour(&stage),
            }
        });
        // A thread that fails drops its sender, and returns its error when it is joined.
        let _ = is_ready.recv_timeout(Duration::from_secs(STRANGERS_START_SECONDS_MAX));
        Ok(Self { stop, thread })
    }

    /// Ends the strangers. Returns how many connections they had, or how many calls a second they
    /// made.
    pub(super) fn end(self) -> Result<f64> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().ok().context("the strangers panicked")?
    }
}

impl Stage {
    /// The same for another port of the server.
    pub(super) fn at(&self, server: SocketAddr) -> Self {
        Self { server, stop: Arc::clone(&self.stop), ready: self.ready.clone() }
    }

    /// The same for a program that accepts so many connections and reads nothing.
    fn elsewhere(&self, connections: usize) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (stage, stop) = (self.at(listener.local_addr()?), Arc::clone(&self.stop));
        std::thread::spawn(move || {
            let _held: Vec<_> = listener.incoming().take(connections).collect();
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        Ok(stage)
    }

    pub(super) fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Lets the measurement begin.
    pub(super) fn begin(&self) {
        // The receiver is gone only when the measurement has given up.
        let _ = self.ready.send(());
    }

    fn wait(&self) -> Result<f64> {
        self.begin();
        while !self.is_over() {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(0.0)
    }

    /// Connects stranger number `number`. A connection ends by a reset, so that thousands of them
    /// leave no ports in TIME_WAIT.
    pub(super) fn connect(&self, number: usize) -> Result<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&address(number).into())?;
        socket.connect(&self.server.into()).context("a stranger cannot connect")?;
        socket.set_linger(Some(Duration::ZERO))?;
        socket.set_tcp_nodelay(true)?;
        Ok(socket.into())
    }
}

/// Returns the address of stranger `number`, with any port.
pub(super) fn address(number: usize) -> SocketAddr {
    let last = 2 + (number % usize::from(ADDRESSES)) as u8;
    SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0))
}
