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

/// One connection. At any time exactly one thread owns it: the thread that runs its event loop, or
/// the thread that serves it.
pub(crate) struct Connection<V> {
    pub(crate) stream: Stream,
    /// The TLS handshake, until it is finished.
    pub(crate) handshaking: Option<Box<Handshaking>>,
    pub(crate) peer: SocketAddr,
    /// Data about the peer, shared with calls that other threads execute.
    pub(crate) visitor: Arc<V>,
    pub(crate) call_back: CallBack,
    pub(crate) received: ReceiveBuffer,
    pub(crate) backlog: Option<Box<Backlog>>,
    /// True if whole records may be in the receive buffer, which must be answered before more is
    /// received.
    pub(crate) stopped: bool,
    /// For a peer to which no export is offered, the second of the last call or reply.
    pub(crate) served_second: Option<u32>,
    /// True if it is in the event loop's list of connections that are tried again each second.
    pub(crate) is_starved: bool,
    /// True if the first record in the receive buffer waits until the gate knows the peer; it is
    /// tried again each second.
    pub(crate) undecided: bool,
    /// The second in which it was last checked whether something is offered to the peer.
    pub(crate) judged: Option<u32>,
    /// True if the peer has closed its sending side.
    pub(crate) hung_up: bool,
    /// Number of threads that execute a call of it while another may serve it.
    pub(crate) away: u32,
    /// True if the epoll set also reports room for replies in the socket.
    pub(crate) watched: bool,
    /// True if the epoll set reports only the end of the connection.
    pub(crate) is_unheard: bool,
    /// Length of the previous record in bytes, if it was longer than a batch.
    pub(crate) large: Option<usize>,
    stamps: Stamps,
    /// The second in which the peer's certificate expires.
    expires: Option<u32>,
    pub(crate) place: Permit,
}

/// The back channel of a connection's peer.
pub(crate) struct CallBack {
    pub(crate) backchannel: Arc<Backchannel>,
    /// The connection's slot in its event loop, which wakers of the back channel read.
    pub(crate) token: Arc<AtomicUsize>,
}

impl Drop for CallBack {
    fn drop(&mut self) {
        self.backchannel.close();
    }
}

/// Times of the last events, in seconds since the server started.
#[derive(Debug, Clone, Copy)]
struct Stamps {
    heard: u32,
    /// True if nothing was received yet.
    fresh: bool,
    /// The time at which the record in the receive buffer began.
    record: Option<u32>,
    /// The time at which replies began to wait, or the peer last read some.
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

    /// Returns whether the epoll set may report nothing while the connection rests. An end would be
    /// reported at once and repeatedly, and room for replies must be reported.
    pub(crate) fn rests_unheard(&self) -> bool {
        self.place.is_held_back() && !self.hung_up && self.backlog.is_none()
    }

    /// Notes that something was received or answered in the second `now`.
    pub(crate) fn note_service(&mut self, now: u32) {
        if self.place.is_held_back() {
            self.served_second = Some(now);
        }
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// Returns its number; no other connection ever has the same.
    pub(crate) fn id(&self) -> u64 {
        self.call_back.backchannel.id()
    }

    /// Appends the replies of a call that another thread executed, to be sent after those that
    /// wait.
    pub(crate) fn append_replies(&mut self, replies: Backlog) {
        self.away = self.away.saturating_sub(1);
        match &mut self.backlog {
            Some(backlog) => backlog.join(replies),
            None => self.backlog = Some(Box::new(replies)),
        }
    }

    /// Notes that the peer uses this channel from the second `now` on.
    pub(crate) fn secured(&mut self, channel: &Channel, now: u32) {
        self.place.secured(channel.kind());
        self.served_second = None;
        let expires = channel.identity().map(|identity| identity.expires);
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let left =
            expires.map(|expires| expires.saturating_sub(since.map_or(0, |it| it.as_secs())));
        self.expires = left.map(|left| now.saturating_add(left.try_into().unwrap_or(u32::MAX)));
    }

    /// Returns the reason for the end of a connection whose transport failed.
    pub(crate) fn failure(&self, error: Errno) -> CloseReason {
        match (error, self.stream.fault()) {
            (Errno::PROTO, Some(fault)) => CloseReason::Tls(fault.clone()),
            (error, _) => error.into(),
        }
    }

    /// Notes that bytes arrived.
    pub(crate) const fn heard(&mut self, now: u32) {
        self.stamps.heard = now;
        self.stamps.fresh = false;
    }

    /// Notes the end of a turn: the time limit of an incomplete record starts now, if `answered`
    /// for a new record.
    pub(crate) fn rests(&mut self, now: u32, answered: bool) {
        self.stamps.record = match self.stamps.record {
            _ if self.received.is_empty() || self.backlog.is_some() => None,
            Some(begun) if !answered => Some(begun),
            _ => Some(now),
        };
    }

    /// Notes that the peer read some of the waiting replies, or that they began to wait.
    pub(crate) const fn reads(&mut self, now: u32) {
        self.stamps.unread = Some(now);
        self.stamps.heard = now;
    }

    /// Notes that the peer read none of the waiting replies.
    pub(crate) fn waits(&mut self, now: u32) {
        self.stamps.unread.get_or_insert(now);
    }

    /// Notes that the peer read all replies.
    pub(crate) const fn has_read(&mut self) {
        self.stamps.unread = None;
    }

    /// Returns why it must end, if a time limit has passed.
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
        let with_peer = |seconds: u32| match self.place.is_held_back() && !self.undecided {
            true => seconds.min(patience.unlisted_seconds),
            false => seconds,
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

#[cfg(test)]
pub(crate) mod tests {
    use std::os::unix::net::UnixStream;

    use comity_credential::{KeyId, PeerIdentity, PeerKey};
    use comity_xdr::Encoder;

    use super::*;
    use crate::admission::{Admission, Standing};
    use crate::memory_budget::MemoryBudget;
    use crate::reply_writer::{Outgoing, Progress};

    /// Returns a connection that was accepted in second 0, and the peer's end.
    pub(crate) fn connection(listed: bool) -> (Box<Connection<()>>, UnixStream) {
        let (here, there) = UnixStream::pair().unwrap();
        here.set_nonblocking(true).unwrap();
        let admission = Arc::new(Admission::new(99, 99, Arc::new(MemoryBudget::new(1 << 10))));
        let standing = if listed { Standing::Listed } else { Standing::HeldBack };
        let place = admission.admit([10, 0, 0, 1].into(), standing).unwrap();
        let backchannel = Arc::new(Backchannel::new(|| {}));
        let call_back = CallBack { backchannel, token: Arc::new(AtomicUsize::new(usize::MAX)) };
        let peer = "10.0.0.1:700".parse().unwrap();
        let connection = Connection::new(here.into(), peer, (Arc::new(()), call_back), place, 0);
        (Box::new(connection), there)
    }

    /// Different times, so that a mistaken one is seen.
    const PATIENCE: Patience = Patience {
        first_byte_seconds: 20,
        record_seconds: 30,
        handshake_seconds: 5,
        unread_seconds: 40,
        idle_seconds: 100,
        unlisted_seconds: 10,
        drain_seconds: 1,
    };

    /// The first second in which the connection is overdue, and the reason.
    fn end(connection: &Connection<()>) -> Option<(u32, String)> {
        (0..1000).find_map(|now| Some((now, connection.overdue(now, &PATIENCE)?.to_string())))
    }

    fn end_second(connection: &Connection<()>) -> Option<u32> {
        end(connection).map(|(second, _)| second)
    }

    /// Replies that the peer did not take.
    fn backlog(connection: &Connection<()>) -> Backlog {
        let mut replies = Encoder::new();
        replies.raw(b"reply");
        let outgoing = Outgoing::of(&replies);
        Backlog::new(outgoing, Progress::default(), &connection.place.account).unwrap()
    }

    /// Keeps the beginning of a record.
    fn keep_part(connection: &mut Connection<()>) {
        connection.received = ReceiveBuffer::part(b"part", &connection.place.account).unwrap();
    }

    #[test]
    fn a_peer_has_a_time_for_its_first_byte_and_a_longer_one_between_calls() {
        let (mut connection, _peer) = connection(true);
        let (second, reason) = end(&connection).unwrap();
        assert_eq!((second, &*reason), (21, "nothing was sent within 20 s of connecting"));
        connection.heard(7);
        assert_eq!(end(&connection), Some((108, "idle for 100 s".into())));
    }

    #[test]
    fn the_time_of_a_record_runs_from_its_first_byte_whatever_follows() {
        let (mut connection, _peer) = connection(true);
        connection.heard(7);
        keep_part(&mut connection);
        connection.rests(7, false);
        for now in 8..37 {
            connection.heard(now);
            connection.rests(now, false);
        }
        let (second, reason) = end(&connection).unwrap();
        assert_eq!((second, &*reason), (38, "a record was not complete after 30 s"));
        connection.rests(20, true);
        assert_eq!(end_second(&connection), Some(51), "the record before was answered");
        connection.received = ReceiveBuffer::Empty;
        connection.rests(21, true);
        assert_eq!(end_second(&connection), Some(137), "no record is begun");
    }

    #[test]
    fn a_record_has_no_time_while_replies_wait_before_it() {
        let (mut connection, _peer) = connection(true);
        connection.heard(7);
        keep_part(&mut connection);
        connection.backlog = Some(Box::new(backlog(&connection)));
        connection.rests(7, false);
        connection.waits(8);
        connection.waits(30);
        assert_eq!(end(&connection), Some((49, "no reply was read for 40 s".into())));
        connection.reads(30);
        assert_eq!(end_second(&connection), Some(71), "the peer has taken a part of them");
        connection.has_read();
        assert_eq!(end_second(&connection), Some(131), "the peer has taken all of them");
    }

    #[test]
    fn a_peer_whose_calls_are_being_done_is_not_late() {
        let (mut connection, _peer) = connection(true);
        connection.heard(7);
        keep_part(&mut connection);
        connection.rests(7, false);
        connection.away = 1;
        assert_eq!(end(&connection), None);
        let replies = backlog(&connection);
        connection.append_replies(replies);
        connection.waits(9);
        assert_eq!(end_second(&connection), Some(50), "but it has to read the replies");
    }

    #[test]
    fn a_peer_that_nothing_is_offered_to_has_the_shortest_time_for_everything() {
        let set: [fn(&mut Connection<()>); 4] = [
            |_| {},
            |connection| connection.heard(0),
            |connection| {
                keep_part(connection);
                connection.rests(0, false);
            },
            |connection| connection.waits(0),
        ];
        for prepare in set {
            let (mut connection, _peer) = connection(false);
            prepare(&mut connection);
            assert_eq!(end_second(&connection), Some(11));
            connection.undecided = true;
            assert!(end_second(&connection) > Some(11), "the peer may turn out to be listed");
            connection.undecided = false;
            connection.place.list();
            assert!(end_second(&connection) > Some(11));
        }
    }

    /// A channel whose peer has shown a certificate that expires then.
    fn proved_until(expires: u64) -> Channel {
        let key = PeerKey::new(&[7], KeyId([7; 32]));
        let (names, authorities) = (Box::default(), Box::default());
        Channel::Tls(Some(Arc::new(PeerIdentity { key, names, authorities, user: None, expires })))
    }

    #[test]
    fn a_connection_ends_after_the_certificate_of_its_peer() {
        let (mut connection, _peer) = connection(true);
        connection.heard(0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        for (expires, latest) in [(now + 50, 62), (now - 1, 12), (0, 12)] {
            connection.secured(&proved_until(expires), 11);
            let (second, reason) = end(&connection).unwrap();
            assert!((latest - 1..=latest).contains(&second), "{second}");
            assert!(reason.contains("expired"), "{reason}");
        }
        connection.secured(&proved_until(u64::MAX), 11);
        assert_eq!(end_second(&connection), Some(101), "a time without end is none");
    }
}
