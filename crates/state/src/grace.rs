//! Grace: after a restart clients come first that had something before it (RFC 8881, 8.4.2).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::effect::RecordedClient;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::table::lock;
use crate::{Client, Desk, Engine, Error, FileKey, Record, Result};

/// What stable storage knew when the server started.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    clients: HashMap<RecordedClient, HashSet<FileKey>>,
}

impl Recovered {
    /// Nothing: the server has never run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a record; in the order in which they were stored.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Client(client) => {
                let knows = client.desk == Desk::ExchangeId;
                let files = self.clients.entry(client).or_default();
                if knows {
                    files.clear();
                }
            }
            Record::Forget(client) => {
                self.clients.remove(&client);
            }
            Record::Revoked(client, file) => {
                // A client that is not remembered must not become so by what it lost.
                if let Some(files) = self.clients.get_mut(&client) {
                    files.insert(file);
                }
            }
        }
    }

    /// The fewest records that make the same.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        self.clients.iter().flat_map(|(client, files)| {
            let revoked = files.iter().map(|file| Record::Revoked(client.clone(), *file));
            std::iter::once(Record::Client(client.clone())).chain(revoked)
        })
    }

    /// The hosts of NLM: they have to be told of the restart, or they reclaim nothing.
    pub fn hosts(&self) -> impl Iterator<Item = &[u8]> {
        self.clients.keys().filter(|client| client.desk == Desk::Nlm).map(|client| &*client.id)
    }

    /// Whether nobody has anything to reclaim.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}

/// For how long nobody must have reclaimed anything before a grace period ends whose
/// time is over: a thousand clients take a while, and get as much time once more.
const QUIET: Duration = Duration::from_secs(3);

/// The grace period.
pub(crate) struct Grace {
    on: AtomicBool,
    until: Duration,
    /// When it ends though clients still reclaim.
    latest: Duration,
    /// When somebody reclaimed something last.
    reclaimed_nanoseconds: AtomicU64,
    expected: Mutex<HashMap<RecordedClient, Expected>>,
}

/// A client that may reclaim.
struct Expected {
    revoked: HashSet<FileKey>,
    /// Whether it has come back.
    returned: bool,
    /// Whether it has reclaimed all it wanted.
    complete: bool,
}

impl Grace {
    pub(crate) fn new((until, length): (Duration, Duration), recovered: Recovered) -> Self {
        let expected =
            |(client, revoked)| (client, Expected { revoked, returned: false, complete: false });
        let expected: HashMap<_, _> = recovered.clients.into_iter().map(expected).collect();
        let on = AtomicBool::new(!expected.is_empty());
        Self {
            on,
            until,
            latest: until.saturating_add(length),
            reclaimed_nanoseconds: AtomicU64::new(0),
            expected: Mutex::new(expected),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// When it ends, unless clients still reclaim.
    pub(crate) const fn until(&self) -> Duration {
        self.until
    }

    /// A client has come back.
    pub(crate) fn returned(&self, client: &Client) {
        if self.is_on()
            && let Some(expected) = lock(&self.expected).get_mut(&client.recorded())
        {
            expected.returned = true;
        }
    }

    /// A client has lost all it had, and what it may have had before the restart.
    pub(crate) fn forget(&self, client: &Client) {
        if self.is_on() {
            lock(&self.expected).remove(&client.recorded());
        }
    }

    /// A client with sessions has reclaimed all it wanted.
    fn complete(&self, client: &Client) {
        if let Some(expected) = lock(&self.expected).get_mut(&client.recorded()) {
            (expected.returned, expected.complete) = (true, true);
        }
    }

    /// Whether nobody needs to be waited for: minor version 0 has no way to say so.
    fn is_idle(&self) -> bool {
        let expected = lock(&self.expected);
        expected
            .iter()
            .all(|(client, expected)| client.desk == Desk::ExchangeId && expected.complete)
    }

    /// Whether `client` may reclaim what it had of `file`.
    pub(crate) fn may_reclaim(&self, now: Duration, client: &Client, file: &FileKey) -> Result<()> {
        if !self.is_on() {
            return Err(Error::NoGrace);
        }
        match lock(&self.expected).get(&client.recorded()) {
            None => Err(Error::ReclaimBad),
            Some(expected) if expected.complete => Err(Error::NoGrace),
            Some(expected) if expected.revoked.contains(file) => Err(Error::ReclaimBad),
            Some(_) => {
                self.reclaimed_nanoseconds.fetch_max(now.as_nanos() as u64, Ordering::AcqRel);
                Ok(())
            }
        }
    }

    /// Whether its time is over, and nobody is reclaiming any more.
    fn is_over(&self, now: Duration) -> bool {
        let last = Duration::from_nanos(self.reclaimed_nanoseconds.load(Ordering::Acquire));
        let quiet = last.is_zero() || now >= last.saturating_add(QUIET);
        now >= self.latest || now >= self.until && quiet
    }

    /// Whether a client of NFSv4 may still reclaim.
    fn awaits_opens(&self) -> bool {
        let may = |(client, expected): (&RecordedClient, &Expected)| {
            client.desk != Desk::Nlm && !expected.complete
        };
        self.is_on() && lock(&self.expected).iter().any(may)
    }

    /// Ends it; tells who was waited for in vain before anybody else is let in.
    fn end(&self, lose: impl FnMut(RecordedClient)) {
        let mut expected = lock(&self.expected);
        let lost = expected.drain().filter(|(client, expected)| match client.desk {
            Desk::Setclientid | Desk::Nlm => !expected.returned,
            Desk::ExchangeId => !expected.complete,
        });
        let mut lost: Vec<_> = lost.map(|(client, _)| client).collect();
        lost.sort_unstable();
        lost.into_iter().for_each(lose);
        self.on.store(false, Ordering::Release);
    }
}

impl Engine {
    /// Whether only reclaims are let in.
    #[must_use]
    pub fn is_in_grace(&self) -> bool {
        self.grace.is_on()
    }

    /// Whether a client of NFSv4 may still reclaim opens and delegations. The records name clients,
    /// not files, so this holds for every file. Hosts of NLM do not count: their locks are
    /// advisory.
    #[must_use]
    pub fn awaits_opens(&self) -> bool {
        self.grace.awaits_opens()
    }

    /// RECLAIM_COMPLETE for all file systems (RFC 8881, 18.51). From now on the client is recorded:
    /// the answer must wait for [`Engine::unstored`].
    ///
    /// # Errors
    /// [`Error::CompleteAlready`].
    pub fn reclaim_complete(&self, now: Duration, client: &Client) -> Result<()> {
        let mut state = client.live()?;
        if std::mem::replace(&mut state.reclaim_complete, true) {
            return Err(Error::CompleteAlready);
        }
        drop(state);
        self.record(Record::Client(client.recorded()));
        if self.is_in_grace() {
            self.grace.complete(client);
            self.end_grace_if_due(now);
        }
        Ok(())
    }

    /// Ends the grace period at its time, or when all who could reclaim have said that they did.
    pub(crate) fn end_grace_if_due(&self, now: Duration) {
        if !self.is_in_grace() || !(self.grace.is_over(now) || self.grace.is_idle()) {
            return;
        }
        // Who did not come back loses its claim before anybody else can get what it had: the
        // records are appended first, and no answer leaves before they are stored.
        self.grace.end(|client| self.record(Record::Forget(client)));
    }
}
