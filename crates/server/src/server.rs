use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_rpc::Backchannel;
use rustix::event::{EventfdFlags, eventfd};

use crate::acceptor::{accept_loop, add_connection};
use crate::counters::{PeerStats, ServerStats};
use crate::event_loop::EventLoop;
use crate::event_loop::{EventLoopHandle, Message};
use crate::limits::{DESCRIPTORS_PER_CONNECTION, DESCRIPTORS_WANTED, DIAL_SECONDS};
use crate::listen::{ListenError, listen};
use crate::service::Service;
use crate::settings::Settings;
use crate::shared::SharedState;
use crate::thread_pool::ThreadPool;
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
    shared: Arc<SharedState<S>>,
    addresses: Vec<SocketAddr>,
    bell: Arc<OwnedFd>,
    acceptor: JoinHandle<()>,
}

impl<S: Service> Server<S> {
    /// Listens and serves.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(service: S, settings: Settings) -> Result<Self, StartError> {
        let listeners =
            settings.listen.iter().map(|&address| listen(address, "choose another with --port"));
        let listeners = listeners.collect::<Result<_, _>>()?;
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
        let shared = start_event_loops(service, settings)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?;
        let bell = Arc::new(bell);
        let (accepting, stop) = (Arc::clone(&shared), Arc::clone(&bell));
        let acceptor = std::thread::Builder::new()
            .name("acceptor".to_owned())
            .spawn(move || accept_loop(&accepting, &listeners, &stop))?;
        Ok(Self { shared, addresses, bell, acceptor })
    }

    /// The addresses it listens on; port 0 is replaced by the port that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &S {
        &self.shared.service
    }

    /// The server's counters and present holdings.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.shared.stats()
    }

    /// A way to ask for the numbers from elsewhere, valid as long as the server runs.
    pub fn stats_source(&self) -> impl Fn() -> ServerStats + Send + Sync + use<S> {
        let shared = Arc::clone(&self.shared);
        move || shared.stats()
    }

    /// A way to ask for the counters of each address from elsewhere, valid as long as the server
    /// runs.
    pub fn peers_source(&self) -> impl Fn() -> Vec<PeerStats> + Send + Sync + use<S> {
        let shared = Arc::clone(&self.shared);
        move || shared.admission.peers()
    }

    /// The settings in force: the bounds that the system lowered are the lower ones.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// A way to call peers that gave an address to be called at, valid as long as the server runs:
    /// connects, waiting for up to [`DIAL_SECONDS`], and serves the connection as any other.
    pub fn dialer(
        &self,
    ) -> impl Fn(SocketAddr) -> io::Result<Arc<Backchannel>> + Send + Sync + use<S> {
        let shared = Arc::downgrade(&self.shared);
        move |peer| {
            let socket = TcpStream::connect_timeout(&peer, Duration::from_secs(DIAL_SECONDS))?;
            socket.set_nonblocking(true)?;
            let shared =
                shared.upgrade().ok_or_else(|| io::Error::other("the server has ended"))?;
            let full = || io::Error::other("the maximum number of connections is open");
            add_connection(&shared, socket.into(), peer).ok_or_else(full)
        }
    }

    /// Takes no more connections, finishes the calls in hand, sends their replies and ends; `false`
    /// if not all was sent within the patience for that.
    pub fn shutdown(self) -> bool {
        let Self { shared, bell, acceptor, .. } = self;
        // An event counter that was never rung takes a ring.
        let _ = rustix::io::write(&*bell, &1_u64.to_ne_bytes());
        let _ = acceptor.join();
        let patience = Duration::from_secs(shared.settings.patience.drain_seconds.into());
        shared.broadcast(|| Message::Drain);
        if shared.pool.wait_for_end(patience) {
            return true;
        }
        shared.broadcast(|| Message::Abort);
        shared.pool.wait_for_end(Duration::from_secs(1));
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

fn start_event_loops<S: Service>(
    service: S,
    settings: Settings,
) -> io::Result<Arc<SharedState<S>>> {
    let event_loops = settings.event_loops.max(1);
    let handles: Vec<_> =
        (0..event_loops).map(|_| EventLoopHandle::new().map(Arc::new)).collect::<Result<_, _>>()?;
    let shared = Arc::new_cyclic(|shared: &Weak<SharedState<S>>| {
        let shared = Weak::clone(shared);
        let pool =
            ThreadPool::new(event_loops, settings.threads_max, move || spawn_worker(&shared));
        SharedState::new(service, settings, handles, pool)
    });
    for handle in &shared.handles {
        let event_loop = EventLoop::new(Arc::clone(handle), shared.settings.patience);
        if shared.pool.run(Box::new(event_loop)).is_err() {
            return Err(io::Error::other("no thread for a desk"));
        }
    }
    Ok(shared)
}

fn spawn_worker<S: Service>(shared: &Weak<SharedState<S>>) -> io::Result<()> {
    let shared = shared.upgrade().ok_or_else(|| io::Error::other("the server has ended"))?;
    std::thread::Builder::new().name("worker".to_owned()).spawn(move || work(&shared))?;
    Ok(())
}
