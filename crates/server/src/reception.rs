//! The thread that takes new connections and tells the desks how late it is.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use comity_rpc::Line;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SocketFlags;
use rustix::time::Timespec;
use socket2::{SockRef, TcpKeepalive};

use crate::admission::Place;
use crate::connection::{CallBack, Connection};
use crate::floor::Floor;
use crate::limits::{
    ACCEPT_PAUSE_MS, ACCEPTS_MAX, KEEPALIVE_INTERVAL_SECONDS, KEEPALIVE_PROBES, KEEPALIVE_SECONDS,
};
use crate::post::Letter;
use crate::quiet::Quiet;
use crate::service::{Ends, Service};

/// Takes connections until `bell`, an event counter, rings.
pub(crate) fn receive<S: Service>(
    floor: &Arc<Floor<S>>,
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
        if seconds != floor.seconds() {
            floor.tick(seconds);
        }
        if rung {
            return;
        }
        for (listener, _) in listeners.iter().zip(ready).filter(|(_, p)| !p.revents().is_empty()) {
            accept_all(floor, listener);
        }
    }
}

fn accept_all<S: Service>(floor: &Arc<Floor<S>>, listener: &TcpListener) {
    for _ in 0..ACCEPTS_MAX {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::acceptfrom_with(listener, flags) {
            Ok((socket, peer)) => {
                if let Some(peer) = peer.and_then(|peer| SocketAddr::try_from(peer).ok()) {
                    drop(greet(floor, socket, peer));
                }
            }
            Err(Errno::AGAIN) => return,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM)) => {
                static LOG: Quiet = Quiet::new();
                LOG.say(|_| tracing::error!(%error, "cannot accept connections for the moment"));
                return std::thread::sleep(Duration::from_millis(ACCEPT_PAUSE_MS));
            }
            // The others concern a connection that failed before it was taken.
            Err(_) => {}
        }
    }
}

/// Gives a new connection to the desk that has the fewest; tells the way to call its peer.
pub(crate) fn greet<S: Service>(
    floor: &Arc<Floor<S>>,
    socket: OwnedFd,
    peer: SocketAddr,
) -> Option<Arc<Line>> {
    let place = admit(floor, peer)?;
    if let Err(error) = prepare(&socket, floor.settings.patience.unread_seconds) {
        tracing::debug!(%peer, %error, "connection was gone before it was served");
        return None;
    }
    let desk = (0..floor.posts.len()).min_by_key(|&desk| floor.posts[desk].load())?;
    let (post, call_back) = (&floor.posts[desk], call_back(floor, desk));
    let line = Arc::clone(&call_back.line);
    floor.accepted.add(1);
    let local = SockRef::from(&socket).local_addr().ok().and_then(|local| local.as_socket());
    let visitor = Arc::new(floor.service.visitor(Ends { peer, local }, &line));
    let connection = Connection::new(socket, peer, (visitor, call_back), place, floor.seconds());
    post.connections.fetch_add(1, Ordering::Relaxed);
    post.deliver(Letter::Arrived(Box::new(connection)), &floor.crew);
    Some(line)
}

/// A line whose bell tells the desk at which its connection sits.
fn call_back<S: Service>(floor: &Arc<Floor<S>>, desk: usize) -> CallBack {
    let seat = Arc::new(AtomicUsize::new(usize::MAX));
    let (floor, at) = (Arc::downgrade(floor), Arc::clone(&seat));
    let line = Line::new(move || {
        if let Some(floor) = floor.upgrade() {
            floor.posts[desk].deliver(Letter::Said(at.load(Ordering::SeqCst)), &floor.crew);
        }
    });
    CallBack { line: Arc::new(line), seat }
}

fn admit<S: Service>(floor: &Floor<S>, peer: SocketAddr) -> Option<Place> {
    match floor.admission.admit(peer.ip(), floor.service.lists(peer.ip())) {
        Ok(place) => Some(place),
        Err(reason) => {
            static LOG: Quiet = Quiet::new();
            floor.refused.add(1);
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
