use std::sync::Arc;
use std::time::Duration;

use comity_vfs::ChangedObjects;

use crate::client::Clients;
use crate::counters::Counters;
use crate::directories::{Changes, DirectoryHistory, WaitingChanges};
use crate::effect::EffectQueue;
use crate::export_graces::ExportGraces;
use crate::file::{Children, File, Files};
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

/// Settings that are fixed when the server starts.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// A number that identifies this boot of the server. It is neither 0 nor all ones.
    pub boot: u32,
    /// The secret from which clientids, sessionids and verifiers are derived.
    pub secret: Secret,
    /// The lease time: a client may be silent for this long.
    pub lease: Duration,
    /// Time after a restart in which only reclaims are accepted: at least the lease time, or zero
    /// if nothing can be reclaimed.
    pub grace: Duration,
    /// Time that an expired client keeps state that nobody else needs.
    pub courtesy: Duration,
    /// Time that a free lock is reserved for the next waiting owner.
    pub lock_offer: Duration,
    /// Time that an owner stays in the queue for a lock without repeating its request. In minor
    /// version 0, where clients can only poll, it is at most the lease time. Linux clients with
    /// callbacks repeat the request every 30 s.
    pub lock_wait: Duration,
    /// Time after a recall in which a file is not delegated again.
    pub recall_rest: Duration,
    /// True if delegations are granted.
    pub delegations: bool,
    /// True if the shell stores records; otherwise no records are made.
    pub durable: bool,
    /// True if the shell wants to know which bytes were unlocked and which delegations ended,
    /// because programs on the server lock and open files, too.
    pub locals: bool,
    /// Most bytes of a message.
    pub message_bytes_max: u32,
    /// Bounds of the state.
    pub limits: Limits,
}

impl Settings {
    /// Returns the default settings. The lease is 90 seconds, as in Linux.
    #[must_use]
    pub const fn new(boot: u32, secret: [u8; 16]) -> Self {
        // Stateids of all zeros and all ones are special (RFC 8881, 8.2.3).
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

/// The state of all clients. It is used by many threads at once.
///
/// Locks are taken in this order, outermost first: the names of clients, a client, a file. Under
/// each of them a thread may take one of these for a moment: a part of a table, a session's
/// channels, the effects, the journal, grace. No thread locks two clients or two files at once. A
/// thread that has a file locked and needs another client unlocks the file first, and checks the
/// file again afterwards.
pub struct Engine {
    pub(crate) settings: Settings,
    pub(crate) clients: Clients,
    pub(crate) sessions: Table<Session, BuildIdHasher>,
    pub(crate) reply_cache: Pool,
    /// The memory for state.
    pub(crate) held: Arc<Pool>,
    pub(crate) files: Files,
    /// Changes of directories that are under way.
    pub(crate) changes: Changes,
    /// Changes of directories whose clients were told to come back.
    pub(crate) waiting: WaitingChanges,
    /// The use of directories, for the policies of their delegations.
    pub(crate) history: DirectoryHistory,
    /// Objects whose attributes were changed, while holders of directories want to be notified.
    pub(crate) changed: ChangedObjects,
    /// The objects whose attributes holders of directories know.
    pub(crate) children: Children,
    /// The grace period after a restart.
    pub(crate) grace: Grace,
    pub(crate) export_graces: ExportGraces,
    pub(crate) effect_queue: EffectQueue,
    pub(crate) counters: Counters,
    pub(crate) unlocked: ReleaseQueue<(FileKey, ByteRange)>,
    pub(crate) undelegated: ReleaseQueue<FileKey>,
    /// Files whose data servers must refuse the handles of earlier layouts.
    pub(crate) fences: ReleaseQueue<FileKey>,
    /// Files whose sizes have a next step: data servers must be asked, or a record forgotten.
    pub(crate) sizes: ReleaseQueue<FileKey>,
    journal: Journal,
    confirms: AtomicU64,
}

impl Engine {
    /// Makes an engine that starts at `now`. It starts in grace if any client may reclaim. Layouts
    /// for writing that an earlier run gave out must be fenced, and the sizes of their files asked.
    #[must_use]
    pub fn new(now: Duration, settings: Settings, recovered: Recovered) -> Self {
        let secret = settings.secret.of_life(settings.boot);
        let settings = Settings { secret, ..settings };
        let open_sizes: Vec<FileKey> = recovered.open_sizes().copied().collect();
        let engine = Self {
            clients: Clients::new(settings.secret, settings.boot),
            sessions: Table::new(),
            reply_cache: Pool::new(settings.limits.reply_cache_bytes),
            held: Arc::new(Pool::new(settings.limits.held_bytes)),
            files: Files::new(),
            changes: Changes::default(),
            waiting: WaitingChanges::default(),
            history: DirectoryHistory::default(),
            changed: ChangedObjects::default(),
            children: Children::default(),
            grace: Grace::new((now.saturating_add(settings.grace), settings.grace), recovered),
            export_graces: ExportGraces::default(),
            effect_queue: EffectQueue::default(),
            counters: Counters::default(),
            unlocked: ReleaseQueue::default(),
            undelegated: ReleaseQueue::default(),
            fences: ReleaseQueue::default(),
            sizes: ReleaseQueue::default(),
            journal: Journal::default(),
            confirms: AtomicU64::new(1),
            settings,
        };
        open_sizes.iter().for_each(|key| engine.recover_size(key));
        engine
    }

    /// Has the layouts of a file fenced that an earlier run gave out for writing, and then its data
    /// servers asked for its size. Without room for the file its record stays for the next run.
    fn recover_size(&self, key: &FileKey) {
        let Ok(file) = self.file(key) else { return };
        let mut on_file = file.state();
        if on_file.layouts.begin_fence() {
            self.files.layouts.fetch_add(1, Ordering::SeqCst);
            self.fences.push(file.key);
        }
        if on_file.layouts.doubt_size() {
            self.sizes.push(file.key);
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

    /// Returns whether there are messages to clients, or changes from which some may follow. The
    /// cost is two atomic loads.
    #[must_use]
    pub fn has_effects(&self) -> bool {
        !self.effect_queue.is_empty() || !self.changed.is_empty()
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

    /// Returns the position that a reply must wait for ([`Engine::is_stored`]). It is nearly always
    /// none.
    #[must_use]
    pub fn unstored(&self) -> Option<JournalPosition> {
        self.journal.unstored()
    }

    /// Returns whether all records are on stable storage, after `settle` has stored the missing
    /// ones. Without `settle` nothing is stored, and the answer is true.
    pub fn is_settled(&self, settle: Option<impl FnOnce(JournalPosition) -> bool>) -> bool {
        self.unstored().zip(settle).is_none_or(|(position, settle)| settle(position))
    }

    /// Returns whether any file or directory is delegated, or was until a change that has yet to
    /// come back. The cost is two atomic loads.
    #[must_use]
    pub fn has_delegations(&self) -> bool {
        self.files.delegations.load(Ordering::SeqCst) > 0 || self.waiting.are_there()
    }

    pub(crate) fn record(&self, record: Record) {
        if self.settings.durable {
            self.journal.append(record);
        }
    }

    /// Returns a number that stands for a client in replies to other clients. It differs for each
    /// client, and grants no access. Zero stands for no client.
    #[must_use]
    pub fn alias(&self, client: ClientId) -> u64 {
        if client == ClientId(0) { 0 } else { self.settings.secret.word(b"alias", client.0) }
    }

    /// Returns a new verifier that nobody can guess.
    pub(crate) fn next_confirm(&self) -> Verifier {
        let number = self.confirms.fetch_add(1, Ordering::Relaxed);
        Verifier(self.settings.secret.word(b"confirm", number).to_be_bytes())
    }

    /// Returns a session by its sessionid.
    #[must_use]
    pub fn session(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.sessions.get(id)
    }

    /// Returns the memory for replies, limited to this client's share.
    pub(crate) fn replies<'a>(&'a self, client: &'a Client) -> Portion<'a> {
        Portion { pool: &self.reply_cache, share: &client.replies }
    }

    /// Returns a file, and adds it to the table if it is unknown.
    pub(crate) fn file(&self, key: &FileKey) -> Result<Arc<File>> {
        self.files.get_or_make(key, self.settings.lock_offer)
    }
}
