//! Clients that may reclaim after a restart, according to stable storage (RFC 8881, 8.4.2).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::table::lock;
use crate::{
    Caller, Client, ClientOwner, ClientProtocol, Error, FileKey, Identity, Record, RecordedClient,
    Result,
};

/// The clients in stable storage when the server started, and the files whose sizes may be unknown.
#[derive(Debug, Clone, Default)]
pub struct Recovered {
    clients: HashMap<RecordedClient, Remembered>,
    open_sizes: HashSet<FileKey>,
}

/// A client from before the restart.
#[derive(Debug, Clone)]
struct Remembered {
    /// None if an earlier version of this program wrote the record. Then any caller may be that
    /// client.
    identity: Option<Identity>,
    /// The files whose state it must not reclaim.
    revoked: HashSet<FileKey>,
}

impl Recovered {
    /// Returns an empty set, for a server that has never run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies a record. Records must be applied in the order in which they were stored.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Client(client, identity) => self.know(client, identity),
            Record::Arrived(client, identity) => self.entry(client).identity = identity,
            Record::Forget(client) => {
                self.clients.remove(&client);
            }
            Record::Revoked(client, file) => {
                // A revocation must not add a client that has no record.
                if let Some(known) = self.clients.get_mut(&client) {
                    known.revoked.insert(file);
                }
            }
            Record::Unrevoked(client, file) => {
                if let Some(known) = self.clients.get_mut(&client) {
                    known.revoked.remove(&file);
                }
            }
            Record::RevocationsKnown(client) => {
                if let Some(known) = self.clients.get_mut(&client) {
                    known.revoked.clear();
                }
            }
            Record::SizeOpen(file) => {
                self.open_sizes.insert(file);
            }
            Record::SizeKnown(file) => {
                self.open_sizes.remove(&file);
            }
        }
    }

    /// Adds the clients of a later run of another server, and what they must not reclaim. Unlike
    /// with records of one run, a client's record there forgets no revocations: the client may not
    /// know of those of an earlier run.
    pub fn join(&mut self, later: Self) {
        for (client, theirs) in later.clients {
            let known = self.entry(client);
            known.identity = theirs.identity;
            known.revoked.extend(theirs.revoked);
        }
        self.open_sizes.extend(later.open_sizes);
    }

    fn know(&mut self, client: RecordedClient, identity: Option<Identity>) {
        let knows_its_losses = client.protocol == ClientProtocol::ExchangeId;
        let known = self.entry(client);
        known.identity = identity;
        if knows_its_losses {
            known.revoked.clear();
        }
    }

    fn entry(&mut self, client: RecordedClient) -> &mut Remembered {
        let new = Remembered { identity: None, revoked: HashSet::new() };
        self.clients.entry(client).or_insert(new)
    }

    /// Returns the fewest records that make the same set.
    pub fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let clients = self.clients.iter().flat_map(|(client, known)| {
            let revoked = known.revoked.iter();
            let revoked = revoked.map(|file| Record::Revoked(client.clone(), *file));
            std::iter::once(Record::Client(client.clone(), known.identity)).chain(revoked)
        });
        clients.chain(self.open_sizes.iter().copied().map(Record::SizeOpen))
    }

    /// Returns the files of which layouts for writing were given out, and whose sizes are not known
    /// since.
    pub fn open_sizes(&self) -> impl Iterator<Item = &FileKey> {
        self.open_sizes.iter()
    }

    /// Returns the names of the hosts of NLM. They must be notified of the restart, or they reclaim
    /// nothing.
    pub fn hosts(&self) -> impl Iterator<Item = &[u8]> {
        self.clients
            .keys()
            .filter(|client| client.protocol == ClientProtocol::Nlm)
            .map(|client| &*client.id)
    }

    /// Returns whether no client has anything to reclaim.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}

/// Time without reclaims after which an overdue grace period ends. A thousand clients may still be
/// reclaiming then; the grace period can last twice its time at most.
const QUIET: Duration = Duration::from_secs(3);

/// The grace period.
pub(crate) struct Grace {
    on: AtomicBool,
    until_nanoseconds: AtomicU64,
    /// The grace period ends so long after that at the latest, even if clients still reclaim.
    length: Duration,
    /// True while some clients cannot reclaim yet.
    held: AtomicBool,
    /// Time of the last reclaim.
    reclaimed_nanoseconds: AtomicU64,
    expected: Mutex<HashMap<RecordedClient, Expected>>,
}

/// A client that may reclaim.
struct Expected {
    remembered: Remembered,
    /// True if it has returned.
    returned: bool,
    /// True if it has sent RECLAIM_COMPLETE.
    complete: bool,
    /// True if it has sent RECLAIM_COMPLETE to an address of other exports: it may use this export
    /// by another connection, and reclaim by that one.
    complete_elsewhere: bool,
}

impl Grace {
    pub(crate) fn new((until, length): (Duration, Duration), recovered: Recovered) -> Self {
        let expected = |(client, remembered)| {
            let (returned, complete, complete_elsewhere) = (false, false, false);
            (client, Expected { remembered, returned, complete, complete_elsewhere })
        };
        let expected: HashMap<_, _> = recovered.clients.into_iter().map(expected).collect();
        let on = AtomicBool::new(!expected.is_empty());
        Self {
            on,
            until_nanoseconds: AtomicU64::new(until.as_nanos() as u64),
            length,
            held: AtomicBool::new(false),
            reclaimed_nanoseconds: AtomicU64::new(0),
            expected: Mutex::new(expected),
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Acquire)
    }

    /// Returns the end of the grace period, unless clients still reclaim then.
    fn until(&self) -> Duration {
        Duration::from_nanos(self.until_nanoseconds.load(Ordering::Acquire))
    }

    /// Returns the time that the grace period has left, once it is not held any more.
    pub(crate) fn left(&self, now: Duration) -> Duration {
        let left = self.until().saturating_sub(now);
        if self.held.load(Ordering::Acquire) { left.max(self.length) } else { left }
    }

    /// Keeps the grace period on while `held`, unless all clients complete.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Release);
    }

    /// Lets the grace period last its whole time again.
    pub(crate) fn restart(&self, now: Duration) {
        let until = now.saturating_add(self.length).as_nanos() as u64;
        self.until_nanoseconds.fetch_max(until, Ordering::AcqRel);
    }

    /// Checks that a caller may take a name. During grace a name belongs to the client that had it
    /// before the restart, until that client has returned.
    ///
    /// # Errors
    /// [`Error::ClidInuse`]: another principal had it. [`Error::Delay`]: the same principal had it
    /// at another origin.
    pub(crate) fn may_take_name(
        &self,
        (protocol, owner): (ClientProtocol, &ClientOwner),
        caller: Caller,
    ) -> Result<()> {
        if !self.is_on() {
            return Ok(());
        }
        let Caller { principal, origin } = caller;
        let identity = Identity { principal, origin, verifier: owner.verifier };
        let name = owner.by(protocol, caller);
        let expected = lock(&self.expected);
        let known = expected.get(&name).filter(|expected| !expected.is_of(&identity));
        match known.and_then(|expected| expected.remembered.identity) {
            Some(other) if other.principal != principal => Err(Error::ClidInuse),
            Some(_) => Err(Error::Delay),
            None => Ok(()),
        }
    }

    /// Notes that a client has returned.
    pub(crate) fn returned(&self, client: &Client) {
        self.change(client, |expected| expected.returned = true);
    }

    /// Notes that a client has lost all its state, and may not reclaim anything.
    pub(crate) fn forget(&self, client: &Client) {
        if self.is_on() {
            let mut expected = lock(&self.expected);
            let name = client.recorded();
            if expected.get(&name).is_some_and(|known| known.is_of(&client.identity())) {
                expected.remove(&name);
            }
        }
    }

    /// Notes that a client with sessions has completed its reclaims.
    pub(crate) fn complete(&self, client: &Client) {
        self.change(client, |expected| (expected.returned, expected.complete) = (true, true));
    }

    /// Notes that a client with sessions has completed its reclaims of other exports.
    pub(crate) fn complete_elsewhere(&self, client: &Client) {
        self.change(client, |expected| {
            (expected.returned, expected.complete_elsewhere) = (true, true);
        });
    }

    /// Changes the entry of a client that may reclaim.
    fn change(&self, client: &Client, change: impl FnOnce(&mut Expected)) {
        if self.is_on() {
            let mut expected = lock(&self.expected);
            let name = client.recorded();
            match expected.get_mut(&name) {
                Some(known) if known.is_of(&client.identity()) => change(known),
                // This is a later instance of the client, which had no state before the restart.
                Some(_) => {
                    expected.remove(&name);
                }
                None => {}
            }
        }
    }

    /// Returns whether grace can end early because all clients have completed. Minor version 0 has
    /// no RECLAIM_COMPLETE, so a client of it prevents that. A client that has completed elsewhere
    /// has half of the time to reclaim here.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let is_half_over = self.left(now) <= self.length / 2;
        let expected = lock(&self.expected);
        expected.iter().all(|(client, expected)| {
            let is_complete = expected.complete || is_half_over && expected.complete_elsewhere;
            client.protocol == ClientProtocol::ExchangeId && is_complete
        })
    }

    /// Checks whether `client` may reclaim its state of `file`. One that may has returned: it may
    /// be known here since before an export came, so that it is not introduced again.
    pub(crate) fn may_reclaim(&self, now: Duration, client: &Client, file: &FileKey) -> Result<()> {
        if !self.is_on() {
            return Err(Error::NoGrace);
        }
        match lock(&self.expected).get_mut(&client.recorded()) {
            None => Err(Error::ReclaimBad),
            Some(expected) if !expected.is_of(&client.identity()) => Err(Error::ReclaimBad),
            Some(expected) if expected.complete => Err(Error::NoGrace),
            Some(expected) if expected.remembered.revoked.contains(file) => Err(Error::ReclaimBad),
            Some(expected) => {
                expected.returned = true;
                self.reclaimed_nanoseconds.fetch_max(now.as_nanos() as u64, Ordering::AcqRel);
                Ok(())
            }
        }
    }

    /// Returns whether the grace period has lasted its time and no client is reclaiming any more.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        if self.held.load(Ordering::Acquire) {
            return false;
        }
        let until = self.until();
        let last = Duration::from_nanos(self.reclaimed_nanoseconds.load(Ordering::Acquire));
        let quiet = last.is_zero() || now >= last.saturating_add(QUIET);
        now >= until.saturating_add(self.length) || now >= until && quiet
    }

    /// Returns whether a client of NFSv4 may still reclaim.
    pub(crate) fn awaits_opens(&self) -> bool {
        let may = |(client, expected): (&RecordedClient, &Expected)| {
            client.protocol != ClientProtocol::Nlm && !expected.complete
        };
        self.is_on() && lock(&self.expected).iter().any(may)
    }

    /// Returns the names of the hosts of NLM that may reclaim; none after grace.
    pub(crate) fn expected_hosts(&self) -> Vec<Box<[u8]>> {
        let expected = lock(&self.expected);
        let hosts = expected.keys().filter(|client| client.protocol == ClientProtocol::Nlm);
        hosts.map(|host| host.id.clone()).collect()
    }

    /// Ends the grace period. It calls `lose` with each client that did not return, before other
    /// clients may take its state.
    pub(crate) fn end(&self, lose: impl FnMut(RecordedClient)) {
        let mut expected = lock(&self.expected);
        lost_of(&expected).into_iter().for_each(lose);
        expected.clear();
        self.on.store(false, Ordering::Release);
    }

    /// Returns the clients that would lose their right to reclaim if the grace period ended now.
    pub(crate) fn lost(&self) -> Vec<RecordedClient> {
        lost_of(&lock(&self.expected))
    }
}

/// Returns the clients that have not returned, or with sessions, not completed, in their order.
fn lost_of(expected: &HashMap<RecordedClient, Expected>) -> Vec<RecordedClient> {
    let lost = expected.iter().filter(|(client, expected)| match client.protocol {
        ClientProtocol::Setclientid | ClientProtocol::Nlm => !expected.returned,
        ClientProtocol::ExchangeId => !expected.complete && !expected.complete_elsewhere,
    });
    let mut lost: Vec<_> = lost.map(|(client, _)| client.clone()).collect();
    lost.sort_unstable();
    lost
}

impl Expected {
    fn is_of(&self, identity: &Identity) -> bool {
        self.remembered.identity.is_none_or(|known| known.is_again(identity))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use comity_vfs::Handle;

    use super::*;
    use crate::OriginChannel;

    /// A client that is known at a later run, too, may not know what it has lost at an earlier one.
    #[test]
    fn a_record_of_a_later_run_forgets_no_revocation_of_an_earlier_one() {
        let (protocol, channel) = (ClientProtocol::ExchangeId, OriginChannel::Plain);
        let client = RecordedClient { protocol, channel, id: b"c"[..].into() };
        let handle = Handle::new(&[1]).unwrap();
        let file = FileKey { volume: 1, export: 1, handle };
        let known = Record::Client(client.clone(), None);
        let revoked = Record::Revoked(client, file);
        let (mut all, mut later) = (Recovered::new(), Recovered::new());
        [known.clone(), revoked.clone()].into_iter().for_each(|record| all.apply(record));
        later.apply(known.clone());
        all.join(later);
        assert_eq!(all.records().collect::<Vec<_>>(), [known, revoked]);
    }
}
