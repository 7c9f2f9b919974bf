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
    /// The system provides no thread, event set or descriptor.
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
    /// Starts a server that listens on the addresses of the settings.
    ///
    /// # Errors
    /// [`StartError`]; nothing runs then.
    pub fn start(service: S, settings: Settings) -> Result<Self, StartError> {
        let listeners =
            settings.listen.iter().map(|&address| listen(address, "choose another with --port"));
        let listeners = listeners.collect::<Result<_, _>>()?;
        Self::start_with(service, settings, listeners)
    }

    /// Starts a server on sockets that already listen, such as those of a service manager.
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

    /// Returns the addresses on which it listens; port 0 is replaced by the port that the system
    /// chose.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The service.
    #[must_use]
    pub fn service(&self) -> &S {
        &self.shared.service
    }

    /// Returns the server's counters and its present use of resources.
    #[must_use]
    pub fn stats(&self) -> ServerStats {
        self.shared.stats()
    }

    /// Returns a function that reads the statistics, valid as long as the server runs.
    pub fn stats_source(&self) -> impl Fn() -> ServerStats + Send + Sync + use<S> {
        let shared = Arc::clone(&self.shared);
        move || shared.stats()
    }

    /// Returns a function that reads the counters of each address, valid as long as the server
    /// runs.
    pub fn peers_source(&self) -> impl Fn() -> Vec<PeerStats> + Send + Sync + use<S> {
        let shared = Arc::clone(&self.shared);
        move || shared.admission.peers()
    }

    /// Returns the settings in force, with bounds that the system may have lowered.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Returns a function that calls back peers at an address that they gave, valid as long as the
    /// server runs. It connects, waiting for up to [`DIAL_SECONDS`], and serves the connection as
    /// any other.
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

    /// Accepts no more connections, finishes the calls under way, sends their replies and ends;
    /// `false` if not all was sent in time.
    pub fn shutdown(self) -> bool {
        let Self { shared, bell, acceptor, .. } = self;
        // Writing to an eventfd whose value is zero does not fail.
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

/// Raises the process's limit of descriptors as far as possible; returns the new limit. It must be
/// called before anything is sized by that limit.
pub fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map(|most| most.max(DESCRIPTORS_WANTED));
    let raise = |to| setrlimit(Resource::Nofile, Rlimit { current: to, maximum: to });
    // Only root may exceed the maximum, and if all is refused, the limit stays as it was.
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
