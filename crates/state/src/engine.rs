use std::sync::Arc;
use std::time::Duration;

use crate::client::Clients;
use crate::counters::Counters;
use crate::effect::EffectQueue;
use crate::file::{File, Files};
use crate::id_hasher::BuildIdHasher;
use crate::local_locks::ReleaseQueue;
use crate::memory_pool::{Pool, Portion};
use crate::record::Journal;
use crate::recovery::Grace;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::table::Table;
use crate::{
    ByteRange, Client, ClientId, Effect, FileKey, JournalPosition, Limits, Record, Recovered,
    Result, Secret, Session, SessionId, Verifier,
};

/// Settings that are chosen when the server starts.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A number that no other life of this server had; neither 0 nor all ones.
    pub boot: u32,
    /// A secret by which clients and sessions are named.
    pub secret: Secret,
    /// Time that a client may be silent.
    pub lease: Duration,
    /// Time after a restart in which only reclaims are accepted: a lease, at least.
    pub grace: Duration,
    /// Time that an expired client keeps state that nobody else needs.
    pub courtesy: Duration,
    /// Time that a lock is reserved for the waiter that is next.
    pub lock_offer: Duration,
    /// Time that a waiter keeps its place without asking again; a lease at most in minor version 0,
    /// where all have to ask again. Linux clients that are called back ask again after 30 s.
    pub lock_wait: Duration,
    /// Time that a file is not delegated again after a recall.
    pub recall_rest: Duration,
    /// True if delegations are granted.
    pub delegations: bool,
    /// True if the shell stores records; else none are made.
    pub durable: bool,
    /// True if the shell is told of unlocked bytes and ended delegations, because programs on the
    /// server lock and open files, too.
    pub locals: bool,
    /// Longest message, in bytes.
    pub message_bytes_max: u32,
    /// Bounds of the state.
    pub limits: Limits,
}

impl Settings {
    /// The usual: a lease of 90 seconds, as Linux has it.
    #[must_use]
    pub const fn new(boot: u32, secret: [u8; 16]) -> Self {
        // Stateids of zeros and of ones mean something else.
        let boot = if boot == 0 || boot == u32::MAX { 1 } else { boot };
        Self {
            boot,
            secret: Secret(secret),
            lease: Duration::from_secs(90),
            grace: Duration::from_secs(90),
            courtesy: Duration::from_secs(24 * 3600),
            lock_offer: Duration::from_secs(5),
            lock_wait: Duration::from_secs(45),
            recall_rest: Duration::from_secs(60),
            delegations: true,
            durable: false,
            locals: false,
            message_bytes_max: (1 << 20) + 4096,
            limits: Limits::DEFAULT,
        }
    }
}

/// The state of all clients. All of it can be used from many threads at once.
///
/// Order of locks, outermost first: names of clients, a client, a file; under each of them, one at
/// a time and for a moment: a part of a table, a session's channels, effects, journal,
/// grace. No two clients and no two files are ever locked together; a thread that has to go from a
/// file to the client in its way unlocks the file first and looks again afterwards.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) sessions: Table<Session, BuildIdHasher>,
    pub(crate) reply_cache: Pool,
    /// The memory for what clients hold.
    pub(crate) held: Arc<Pool>,
    pub(crate) files: Files,
    pub(crate) grace: Grace,
    pub(crate) effect_queue: EffectQueue,
    pub(crate) counters: Counters,
    pub(crate) unlocked: ReleaseQueue<(FileKey, ByteRange)>,
    pub(crate) undelegated: ReleaseQueue<FileKey>,
    journal: Journal,
    confirms: AtomicU64,
}

impl Engine {
    /// Makes an engine that starts at `now`, in grace if any client may reclaim.
    #[must_use]
    pub fn new(now: Duration, settings: Settings, recovered: Recovered) -> Self {
        let secret = settings.secret.of_life(settings.boot);
        let settings = Settings { secret, ..settings };
        Self {
            clients: Clients::new(settings.secret, settings.boot),
            sessions: Table::new(),
            reply_cache: Pool::new(settings.limits.reply_cache_bytes),
            held: Arc::new(Pool::new(settings.limits.held_bytes)),
            files: Files::new(),
            grace: Grace::new((now.saturating_add(settings.grace), settings.grace), recovered),
            effect_queue: EffectQueue::default(),
            counters: Counters::default(),
            unlocked: ReleaseQueue::default(),
            undelegated: ReleaseQueue::default(),
            journal: Journal::default(),
            confirms: AtomicU64::new(1),
            settings,
        }
    }

    /// Returns the settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns the next message to a client.
    #[must_use]
    pub fn poll_effect(&self) -> Option<Effect> {
        self.effect_queue.pop()
    }

    /// Returns whether there are messages to clients; it reads one number.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !self.effect_queue.is_empty()
    }

    /// Takes the records to store; returns the position to be acknowledged by [`Engine::stored`]
    /// afterwards.
    pub fn poll_records(&self, into: &mut Vec<Record>) -> JournalPosition {
        self.journal.take(into)
    }

    /// Notes that everything before `position` is on stable storage.
    pub fn stored(&self, position: JournalPosition) {
        self.journal.acknowledge(position);
    }

    /// Returns whether everything before `position` is on stable storage.
    #[must_use]
    pub fn is_stored(&self, position: JournalPosition) -> bool {
        self.journal.is_stored(position)
    }

    /// Returns the position that the answer to an operation on state must wait for until
    /// [`Engine::is_stored`]; nearly always none.
    #[must_use]
    pub fn unstored(&self) -> Option<JournalPosition> {
        self.journal.unstored()
    }

    /// Returns whether all records are on stable storage, after `settle` has stored those that were
    /// not. Without `settle` nothing outlives the server, and the answer is true.
    pub fn is_settled(&self, settle: Option<impl FnOnce(JournalPosition) -> bool>) -> bool {
        self.unstored().zip(settle).is_none_or(|(position, settle)| settle(position))
    }

    /// Returns whether any file is delegated; it reads one number.
    #[must_use]
    pub fn has_delegations(&self) -> bool {
        self.files.delegations.load(Ordering::Acquire) > 0
    }

    pub(crate) fn record(&self, record: Record) {
        if self.settings.durable {
            self.journal.append(record);
        }
    }

    /// A name by which others are told of a client: it differs from client to client, and nothing
    /// can be done with it. Zero names no client.
    #[must_use]
    pub fn alias(&self, client: ClientId) -> u64 {
        if client == ClientId(0) { 0 } else { self.settings.secret.word(b"alias", client.0) }
    }

    /// A verifier that was never given out and that nobody can guess.
    pub(crate) fn next_confirm(&self) -> Verifier {
        let number = self.confirms.fetch_add(1, Ordering::Relaxed);
        Verifier(self.settings.secret.word(b"confirm", number).to_be_bytes())
    }

    /// A session by its id.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// The memory for replies, as this client meets it.
    pub(crate) fn replies<'a>(&'a self, client: &'a Client) -> Portion<'a> {
        Portion { pool: &self.reply_cache, share: &client.replies }
    }

    /// A file, known or not.
    pub(crate) fn file(&self, key: &FileKey) -> Result<Arc<File>> {
        self.files.get_or_make(key, self.settings.lock_offer)
    }
}
