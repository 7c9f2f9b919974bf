use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

use comity_credential::Channel;
use comity_rpc::Backchannel;
use rustix::io::Errno;

use crate::admission::Permit;
use crate::close_reason::CloseReason;
use crate::handshaking::Handshaking;
use crate::receive_buffer::ReceiveBuffer;
use crate::reply_writer::Backlog;
use crate::settings::Patience;
use crate::transport::Stream;

/// One connection. At any time exactly one thread holds it: the one that runs its event loop, or
/// the one that serves it.
pub(crate) struct Connection<V> {
    pub(crate) stream: Stream,
    /// The TLS handshake, until it is finished.
    pub(crate) handshaking: Option<Box<Handshaking>>,
    pub(crate) peer: SocketAddr,
    /// State shared with those of its calls that another thread does.
    pub(crate) visitor: Arc<V>,
    pub(crate) call_back: CallBack,
    pub(crate) received: ReceiveBuffer,
    pub(crate) backlog: Option<Box<Backlog>>,
    /// Whole records may stand in the inbox: it is looked at before more is received.
    pub(crate) stopped: bool,
    /// For a peer that no export is offered to, the second of the last call or reply.
    pub(crate) served_second: Option<u32>,
    /// It stands in the event loop's list of those that are tried again each second.
    pub(crate) is_starved: bool,
    /// The first record in the inbox waits until the gate knows the peer; it is tried again each
    /// second.
    pub(crate) undecided: bool,
    /// The time of the last question whether something is offered to the peer.
    pub(crate) judged: Option<u32>,
    /// The peer will send no more than it has sent.
    pub(crate) hung_up: bool,
    /// Threads that do a call of it, while another may serve it.
    pub(crate) away: u32,
    /// True if the epoll set also reports room for replies.
    pub(crate) watched: bool,
    /// True if the epoll set reports only its end.
    pub(crate) is_unheard: bool,
    /// Bytes of the record before, if it was longer than a batch.
    pub(crate) large: Option<usize>,
    stamps: Stamps,
    /// The second in which the peer's certificate expires.
    expires: Option<u32>,
    pub(crate) place: Permit,
}

/// The way to call a connection's peer back.
pub(crate) struct CallBack {
    pub(crate) backchannel: Arc<Backchannel>,
    /// Tells the line's bell where the connection sits.
    pub(crate) token: Arc<AtomicUsize>,
}

impl Drop for CallBack {
    fn drop(&mut self) {
        self.backchannel.close();
    }
}

/// The time of the last event, in seconds since the server started.
#[derive(Debug, Clone, Copy)]
struct Stamps {
    heard: u32,
    /// Nothing was heard yet.
    fresh: bool,
    /// The time at which the record in the receive buffer began.
    record: Option<u32>,
    /// The time at which replies began to wait, or the peer last took some.
    unread: Option<u32>,
}

impl<V> Connection<V> {
    pub(crate) fn new(
        socket: OwnedFd,
        peer: SocketAddr,
        (visitor, call_back): (Arc<V>, CallBack),
        place: Permit,
        now: u32,
    ) -> Self {
        Self {
            stream: Stream::plain(socket),
            handshaking: None,
            peer,
            visitor,
            call_back,
            received: ReceiveBuffer::Empty,
            backlog: None,
            stopped: false,
            served_second: None,
            is_starved: false,
            undecided: false,
            judged: None,
            hung_up: false,
            away: 0,
            watched: false,
            is_unheard: false,
            large: None,
            stamps: Stamps { heard: now, fresh: true, record: None, unread: None },
            expires: None,
            place,
        }
    }

    /// Returns whether nothing that arrives need be reported while it rests. An end would be
    /// reported at once and for ever, and room for replies must be.
    pub(crate) fn rests_unheard(&self) -> bool {
        !self.place.is_listed() && !self.hung_up && self.backlog.is_none()
    }

    /// Notes that something was received or answered in the second `now`.
    pub(crate) fn note_service(&mut self, now: u32) {
        if !self.place.is_listed() {
            self.served_second = Some(now);
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// Its number; no other connection ever has the same.
    pub(crate) fn id(&self) -> u64 {
        self.call_back.backchannel.id()
    }

    /// A call that another thread did comes back with its replies, to be sent after those that
    /// wait.
    pub(crate) fn append_replies(&mut self, replies: Backlog) {
        self.away = self.away.saturating_sub(1);
        match &mut self.backlog {
            Some(backlog) => backlog.join(replies),
            None => self.backlog = Some(Box::new(replies)),
        }
    }

    /// The peer has this channel from the second `now` on.
    pub(crate) fn secured(&mut self, channel: &Channel, now: u32) {
        self.place.secured(channel.kind());
        self.served_second = None;
        let expires = channel.identity().map(|identity| identity.expires);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let left =
            expires.map(|expires| expires.saturating_sub(since.map_or(0, |it| it.as_secs())));
        self.expires = left.map(|left| now.saturating_add(left.try_into().unwrap_or(u32::MAX)));
    }

    /// Why it ends when its transport failed.
    pub(crate) fn failure(&self, error: Errno) -> CloseReason {
        match (error, self.stream.fault()) {
            (Errno::PROTO, Some(fault)) => CloseReason::Tls(fault.clone()),
            (error, _) => error.into(),
        }
    }

    /// Bytes arrived.
    pub(crate) const fn heard(&mut self, now: u32) {
        self.stamps.heard = now;
        self.stamps.fresh = false;
    }

    /// A turn ends: from now on an incomplete record's time runs, if `answered` a new one's.
    pub(crate) fn rests(&mut self, now: u32, answered: bool) {
        self.stamps.record = match self.stamps.record {
            _ if self.received.is_empty() || self.backlog.is_some() => None,
            Some(begun) if !answered => Some(begun),
            _ => Some(now),
        };
    }

    /// The peer took some of the waiting replies, or they began to wait.
    pub(crate) const fn reads(&mut self, now: u32) {
        self.stamps.unread = Some(now);
        self.stamps.heard = now;
    }

    /// The peer took nothing of what waits.
    pub(crate) fn waits(&mut self, now: u32) {
        self.stamps.unread.get_or_insert(now);
    }

    /// The peer took all.
    pub(crate) const fn has_read(&mut self) {
        self.stamps.unread = None;
    }

    /// Why it should end, if its time is up.
    pub(crate) fn overdue(&self, now: u32, patience: &Patience) -> Option<CloseReason> {
        let late = |since: u32, seconds: u32| now.saturating_sub(since) > seconds;
        if let Some(handshaking) = &self.handshaking {
            let seconds = patience.handshake_seconds;
            let slow = CloseReason::HandshakeSlow(seconds);
            return late(handshaking.begun, seconds).then_some(slow);
        }
        if self.expires.is_some_and(|expires| now > expires) {
            return Some(CloseReason::Expired);
        }
        // A peer whose name is being looked up may be listed.
        let with_peer = |seconds: u32| match self.place.is_listed() || self.undecided {
            true => seconds,
            false => seconds.min(patience.unlisted_seconds),
        };
        if let Some(since) = self.stamps.unread {
            let seconds = with_peer(patience.unread_seconds);
            return late(since, seconds).then_some(CloseReason::Unread(seconds));
        }
        if self.away > 0 {
            return None;
        }
        if let Some(since) = self.stamps.record {
            let seconds = with_peer(patience.record_seconds);
            return late(since, seconds).then_some(CloseReason::Slow(seconds));
        }
        if self.stamps.fresh {
            let seconds = with_peer(patience.first_byte_seconds);
            return late(self.stamps.heard, seconds).then_some(CloseReason::Mute(seconds));
        }
        let seconds = with_peer(patience.idle_seconds);
        late(self.stamps.heard, seconds).then_some(CloseReason::Idle(seconds))
    }
}
