//! Records of the clients that may reclaim, and of files whose sizes may be unknown, on their way
//! to stable storage.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::lock;
use crate::{
    Caller, ClientOwner, ClientProtocol, FileKey, Origin, OriginChannel, Principal, Verifier,
};

/// The name of a client, also in stable storage. The same id by two channels is two clients: nobody
/// who comes in clear, or with another key, can take the name of a client that came with a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordedClient {
    /// The protocol by which it introduced itself.
    pub protocol: ClientProtocol,
    /// The channel by which it did.
    pub channel: OriginChannel,
    /// Its owner id.
    pub id: Box<[u8]>,
}

impl RecordedClient {
    /// The bytes that no other name has.
    pub(crate) fn key(&self) -> Box<[u8]> {
        let protocol = self.protocol as u8;
        match self.channel {
            OriginChannel::Plain => [&[protocol, 0], &*self.id].concat(),
            OriginChannel::Tls => [&[protocol, 1], &*self.id].concat(),
            OriginChannel::Key(key) => [&[protocol, 2][..], &key.0, &self.id].concat(),
        }
        .into()
    }
}

impl ClientOwner {
    /// Returns the name of the client that a caller introduces.
    pub(crate) fn by(&self, protocol: ClientProtocol, caller: Caller) -> RecordedClient {
        let channel = match protocol {
            ClientProtocol::Nlm => OriginChannel::Plain,
            _ => *caller.origin.channel(),
        };
        RecordedClient { protocol, channel, id: self.id.clone() }
    }
}

/// The identity of a client across restarts of the server. A reclaim is accepted only from the same
/// principal, and only from the same origin or by the same instance of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Identity {
    /// The principal that introduced it.
    pub principal: Principal,
    /// The origin.
    pub origin: Origin,
    /// The verifier of its instance.
    pub verifier: Verifier,
}

impl Identity {
    /// Returns whether `other` may be the same client. A client may have moved or restarted, but
    /// not both.
    #[must_use]
    pub fn is_again(&self, other: &Self) -> bool {
        let here = self.origin == other.origin;
        if self.principal == other.principal {
            return here || self.verifier == other.verifier;
        }
        here && other.principal == Principal::SYSTEM
    }
}

/// A change of the state that must survive a restart. Records that are applied in order make a
/// [`crate::Recovered`]: a set of clients, each with the files whose state it must not reclaim, and
/// the files whose sizes may be unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The client may reclaim after a restart. For a client with sessions the record also forgets
    /// what it must not reclaim: such a client is recorded after RECLAIM_COMPLETE, which shows that
    /// it knows what it has lost.
    Client(RecordedClient, Option<Identity>),
    /// The client may reclaim after a restart, except for what it must not reclaim already: it has
    /// come from another server with state of some files.
    Arrived(RecordedClient, Option<Identity>),
    /// The client must not reclaim anything: it was forgotten, or it did not return in grace (RFC
    /// 8881, 8.4.2.1).
    Forget(RecordedClient),
    /// The client must not reclaim its state of this file, which was revoked.
    Revoked(RecordedClient, FileKey),
    /// The client may reclaim later state of this file: another server, to which the file has
    /// moved, tells of the revocation.
    Unrevoked(RecordedClient, FileKey),
    /// The client may reclaim later state of all files whose state was revoked: FREE_STATEID of the
    /// last one shows that it knows of them.
    RevocationsKnown(RecordedClient),
    /// A layout for writing of this file is given out, so its data servers may have bytes after
    /// the end that the metadata server knows (RFC 8881, 12.5.4).
    SizeOpen(FileKey),
    /// No layout for writing of this file is out, and its size is known.
    SizeKnown(FileKey),
}

/// A position in the sequence of records. It stands for all records before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JournalPosition(pub u64);

/// Records on their way to stable storage.
#[derive(Default)]
pub(crate) struct Journal {
    queue: Mutex<Vec<Record>>,
    written: AtomicU64,
    stored: AtomicU64,
}

impl Journal {
    pub(crate) fn append(&self, record: Record) {
        let mut queue = lock(&self.queue);
        queue.push(record);
        self.written.fetch_add(1, Ordering::Release);
    }

    /// Takes the records to store; returns the position to be acknowledged afterwards.
    pub(crate) fn take(&self, into: &mut Vec<Record>) -> JournalPosition {
        let mut queue = lock(&self.queue);
        into.append(&mut queue);
        JournalPosition(self.written.load(Ordering::Acquire))
    }

    pub(crate) fn acknowledge(&self, JournalPosition(position): JournalPosition) {
        self.stored.fetch_max(position, Ordering::AcqRel);
    }

    pub(crate) fn is_stored(&self, JournalPosition(position): JournalPosition) -> bool {
        self.stored.load(Ordering::Acquire) >= position
    }

    pub(crate) fn unstored(&self) -> Option<JournalPosition> {
        let position = JournalPosition(self.written.load(Ordering::Acquire));
        (!self.is_stored(position)).then_some(position)
    }
}
