//! The thread that accepts connections and sends the event loops a tick every second.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use comity_rpc::Backchannel;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;
use socket2::{SockRef, TcpKeepalive};

use crate::admission::{Permit, Standing};
use crate::connection::{CallBack, Connection};
use crate::event_loop::Message;
use crate::limits::{
    ACCEPT_PAUSE_MS, ACCEPTS_MAX, KEEPALIVE_INTERVAL_SECONDS, KEEPALIVE_PROBES, KEEPALIVE_SECONDS,
};
use crate::log_rate_limit::LogRateLimit;
use crate::service::{Endpoints, Service};
use crate::shared::SharedState;

/// Accepts connections until the eventfd `bell` is written to.
pub(crate) fn accept_loop<S: Service>(
    shared: &Arc<SharedState<S>>,
    listeners: &[TcpListener],
    bell: &OwnedFd,
) {
    let born = Instant::now();
    let mut polled: Vec<_> =
        listeners.iter().map(|listener| PollFd::new(listener, PollFlags::IN)).collect();
    polled.push(PollFd::new(bell, PollFlags::IN));
    loop {
        let second = Timespec { tv_sec: 1, tv_nsec: 0 };
        match poll(&mut polled, Some(&second)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => tracing::error!(%error, "waiting for new connections failed"),
        }
        let (rung, ready) = match polled.split_last() {
            Some((bell, ready)) => (!bell.revents().is_empty(), ready),
            None => return,
        };
        let seconds = born.elapsed().as_secs() as u32;
        if seconds != shared.seconds() {
            shared.tick(seconds);
        }
        if rung {
            return;
        }
        for (listener, _) in listeners.iter().zip(ready).filter(|(_, p)| !p.revents().is_empty()) {
            accept_all(shared, listener);
        }
    }
}

fn accept_all<S: Service>(shared: &Arc<SharedState<S>>, listener: &TcpListener) {
    for _ in 0..ACCEPTS_MAX {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::acceptfrom_with(listener, flags) {
            Ok((socket, peer)) => {
                if let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
                    drop(add_connection(shared, socket, peer));
                }
            }
            Err(Errno::AGAIN) => return,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                static LOG: LogRateLimit = LogRateLimit::new();
                LOG.say(|_| tracing::error!(%error, "cannot accept connections for the moment"));
                return std::thread::sleep(Duration::from_millis(ACCEPT_PAUSE_MS));
            }
            // The other errors are of a connection that failed before it was accepted.
            Err(_) => {}
        }
    }
}

/// Gives a new connection to the event loop that has the fewest; returns its back channel.
pub(crate) fn add_connection<S: Service>(
    shared: &Arc<SharedState<S>>,
    socket: OwnedFd,
    peer: SocketAddr,
) -> Option<Arc<Backchannel>> {
    let place = admit(shared, peer)?;
    if let Err(error) = prepare(&socket, shared.settings.patience.unread_seconds) {
        tracing::debug!(%peer, %error, "connection ended before it was served");
        return None;
    }
    let event_loop =
        (0..shared.handles.len()).min_by_key(|&event_loop| shared.handles[event_loop].load())?;
    let (handle, call_back) = (&shared.handles[event_loop], call_back(shared, event_loop));
    let line = Arc::clone(&call_back.backchannel);
    shared.accepted.add(1);
    let local = SockRef::from(&socket).local_addr().ok().and_then(|local| local.as_socket());
    let visitor = Arc::new(shared.service.visitor(Endpoints { peer, local }, &line));
    let connection = Connection::new(socket, peer, (visitor, call_back), place, shared.seconds());
    handle.connections.fetch_add(1, Ordering::Relaxed);
    handle.deliver(Message::Arrived(Box::new(connection)), &shared.pool);
    Some(line)
}

/// Makes a back channel that wakes the event loop of its connection.
fn call_back<S: Service>(shared: &Arc<SharedState<S>>, event_loop: usize) -> CallBack {
    let token = Arc::new(AtomicUsize::new(usize::MAX));
    let (shared, at) = (Arc::downgrade(shared), Arc::clone(&token));
    let backchannel = Backchannel::new(move || {
        if let Some(shared) = shared.upgrade() {
            shared.handles[event_loop]
                .deliver(Message::Said(at.load(Ordering::SeqCst)), &shared.pool);
        }
    });
    CallBack { backchannel: Arc::new(backchannel), token }
}

fn admit<S: Service>(shared: &SharedState<S>, peer: SocketAddr) -> Option<Permit> {
    let service = &shared.service;
    let standing = match (service.lists(peer.ip()), service.serves_unlisted()) {
        (true, _) => Standing::Listed,
        (false, true) => Standing::Served,
        (false, false) => Standing::HeldBack,
    };
    match shared.admission.admit(peer.ip(), standing) {
        Ok(place) => Some(place),
        Err(reason) => {
            static LOG: LogRateLimit = LogRateLimit::new();
            shared.refused.add(1);
            LOG.say(|suppressed| {
                tracing::warn!(%peer, %reason, suppressed, "connection refused");
            });
            None
        }
    }
}

fn prepare(socket: &OwnedFd, unread_seconds: u32) -> std::io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(KEEPALIVE_SECONDS))
        .with_interval(Duration::from_secs(KEEPALIVE_INTERVAL_SECONDS))
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    // A peer that vanished with replies on their way would otherwise be held for a quarter hour.
    socket.set_tcp_user_timeout(Some(Duration::from_secs(unread_seconds.into())))
}
