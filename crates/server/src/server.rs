use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_rpc::Line;
use rustix::event::{EventfdFlags, eventfd};

use crate::counters::ShellNumbers;
use crate::crew::Crew;
use crate::desk::Desk;
use crate::floor::Floor;
use crate::limits::{DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_WANTED, DIAL_SECONDS};
use crate::listen::{ListenError, listen};
use crate::post::{Letter, Post};
use crate::reception::{greet, receive};
use crate::service::Service;
use crate::settings::Settings;
use crate::worker::work;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The system gives no thread, event set or descriptor.
    #[error("the system gives no thread or event set: {0}")]
    System(#[from] io::Error),
}

/// A running server.
pub struct Server<S: Service> {
    floor: Arc<Floor<S>>,
    addresses: Vec<SocketAddr>,
    bell: Arc<OwnedFd>,
    reception: JoinHandle<()>,
}

impl<S: Service> Server<S> {
    /// Listens and serves.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(service: S, settings: Settings) -> Result<Self, StartError> {
        let listeners =
            settings.listen.iter().map(|&address| listen(address)).collect::<Result<_, _>>()?;
        Self::start_with(service, settings, listeners)
    }

    /// Serves on sockets that already listen, as handed over by a service manager.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start_with(
        service: S,
        mut settings: Settings,
        listeners: Vec<TcpListener>,
    ) -> Result<Self, StartError> {
        settings.connections_max = settings.connections_max.min(connections_possible());
        let addresses = listeners.iter().map(TcpListener::local_addr).collect::<Result<_, _>>()?;
        for listener in &listeners {
            listener.set_nonblocking(true)?;
        }
        let floor = open_floor(service, settings)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?;
        let bell = Arc::new(bell);
        let (shared, rung) = (Arc::clone(&floor), Arc::clone(&bell));
        let reception = std::thread::Builder::new()
            .name("reception".to_owned())
            .spawn(move || receive(&shared, &listeners, &rung))?;
        Ok(Self { floor, addresses, bell, reception })
    }

    /// Where it listens, ports chosen by the system filled in.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What is served.
    #[must_use]
    pub fn service(&self) -> &S {
        &self.floor.service
    }

    /// What it did and what it holds.
    #[must_use]
    pub fn numbers(&self) -> ShellNumbers {
        self.floor.numbers()
    }

    /// A way to ask for the numbers from elsewhere, valid as long as the server runs.
    pub fn numbers_source(&self) -> impl Fn() -> ShellNumbers + Send + Sync + use<S> {
        let floor = Arc::clone(&self.floor);
        move || floor.numbers()
    }

    /// A way to call peers that gave an address to be called at, valid as long as the server runs:
    /// connects, waiting for up to [`DIAL_SECONDS`], and serves the connection as any other.
    pub fn dialer(&self) -> impl Fn(SocketAddr) -> io::Result<Arc<Line>> + Send + Sync + use<S> {
        let floor = Arc::downgrade(&self.floor);
        move |peer| {
            let socket = TcpStream::connect_timeout(&peer, Duration::from_secs(DIAL_SECONDS))?;
            socket.set_nonblocking(true)?;
            let floor = floor.upgrade().ok_or_else(|| io::Error::other("the server has ended"))?;
            let full = || io::Error::other("there is no place for another connection");
            greet(&floor, socket.into(), peer).ok_or_else(full)
        }
    }

    /// Takes no more connections, finishes the calls in hand, sends their replies and ends; `false`
    /// if not all was sent within the patience for that.
    pub fn shutdown(self) -> bool {
        let Self { floor, bell, reception, .. } = self;
        // An event counter that was never rung takes a ring.
        let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        let _ = reception.join();
        let patience = Duration::from_secs(floor.settings.patience.drain_seconds.into());
        floor.tell(|| Letter::Drain);
        if floor.crew.wait_for_end(patience) {
            return true;
        }
        floor.tell(|| Letter::Abort);
        floor.crew.wait_for_end(Duration::from_secs(1));
        false
    }
}

/// Raises the process's limit of descriptors as far as it may; returns what it is then. To be
/// called before anything sizes itself by that limit.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map(|most| most.max(DESCRIPTORS_WANTED));
    let raise = |to| setrlimit(Resource::Nofile, Rlimit { current: to, maximum: to });
    // Only root may go above the maximum, and where all is refused the limit stays what it was.
    let _ = raise(wanted).or_else(|_| raise(limit.maximum));
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn connections_possible() -> usize {
    raise_descriptor_limit() as usize / DESCRIPTORS_PER_CONNECTION
}

fn open_floor<S: Service>(service: S, settings: Settings) -> io::Result<Arc<Floor<S>>> {
    let desks = settings.desks.max(1);
    let posts: Vec<_> = (0..desks).map(|_| Post::new().map(Arc::new)).collect::<Result<_, _>>()?;
    let floor = Arc::new_cyclic(|floor: &Weak<Floor<S>>| {
        let floor = Weak::clone(floor);
        let crew = Crew::new(desks, settings.threads_max, move || hire(&floor));
        Floor::new(service, settings, posts, crew)
    });
    for post in &floor.posts {
        let desk = Desk::new(Arc::clone(post), floor.settings.patience);
        if floor.crew.run(Box::new(desk)).is_err() {
            return Err(io::Error::other("no thread for a desk"));
        }
    }
    Ok(floor)
}

fn hire<S: Service>(floor: &Weak<Floor<S>>) -> io::Result<()> {
    let floor = floor.upgrade().ok_or_else(|| io::Error::other("the server has ended"))?;
    std::thread::Builder::new().name("worker".to_owned()).spawn(move || work(&floor))?;
    Ok(())
}
