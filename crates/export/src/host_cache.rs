//! The names of peers. A look-up may take long, so separate threads do it: threads that serve calls
//! never wait for one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity_credential::network_of;
use comity_vfs::{Result, Status};

use crate::limits::{
    LOOKUP_PAUSE, LOOKUP_STACK_BYTES, LOOKUP_THREADS_MAX, LOOKUPS_PER_ASKER_MAX,
    LOOKUPS_WAITING_MAX, NAME_BYTES_MAX, NAME_FAILURE_SECONDS, NAME_SECONDS, NAME_STALE_SECONDS,
    NAMES_MAX,
};
use crate::{Resolver, Unresolved};

/// The names of addresses that have called, for one plan. An address is looked up only if an entry
/// by name or a condition of a credential may depend on its name.
pub(crate) struct HostCache(Arc<Book>);

struct Book {
    resolver: Arc<dyn Resolver>,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    known: HashMap<IpAddr, Known>,
    /// Addresses that wait for a thread, in order of arrival.
    waiting: VecDeque<IpAddr>,
    /// Addresses that wait or are being looked up.
    asked: HashSet<IpAddr>,
    threads: usize,
}

/// The result of the last look-up of an address, and of the last one that did not fail.
#[derive(Default)]
struct Known {
    names: Option<(Arc<[Box<str>]>, Instant)>,
    /// The time at which the next look-up is due.
    again: Option<Instant>,
}

impl Known {
    /// The names, unless they are too old.
    fn names(&self, now: Instant) -> Option<&Arc<[Box<str>]>> {
        let (names, since) = self.names.as_ref()?;
        (now.duration_since(*since) < Duration::from_secs(NAME_STALE_SECONDS)).then_some(names)
    }

    fn is_due(&self, now: Instant) -> bool {
        self.again.is_none_or(|again| now >= again)
    }
}

impl HostCache {
    /// Makes the cache of a plan that replaces another. Known names stay valid for a while, so that
    /// admitted peers do not wait, and are looked up again at their next call.
    pub(crate) fn new(resolver: Arc<dyn Resolver>, old: Option<&Self>) -> Self {
        let known = old.map(|old| old.0.table().still_known()).unwrap_or_default();
        let table = Mutex::new(Table { known, ..Table::default() });
        Self(Arc::new(Book { resolver, table }))
    }

    /// Returns the names of a peer that the name's owner confirms: its address as text, its full
    /// name, and the short name if it is known here too. It never waits: another thread does a
    /// look-up that is due, and earlier names stay valid for a while.
    ///
    /// # Errors
    /// [`Status::Delay`] if the names are unknown now. A wider entry must not decide then: its
    /// rules may be weaker than those of entries by name.
    pub(crate) fn of(&self, peer: IpAddr) -> Result<Arc<[Box<str>]>> {
        let mut table = self.0.table();
        let (now, known) = (Instant::now(), table.known.get(&peer));
        let names = known.and_then(|known| known.names(now)).cloned();
        let starts = known.is_none_or(|known| known.is_due(now)) && table.enqueue(peer);
        drop(table);
        if starts {
            self.start_thread();
        }
        names.ok_or(Status::Delay)
    }

    /// Returns the known names of a peer without its address, separated by spaces. Empty if none is
    /// known; a look-up begins then.
    pub(crate) fn known_names(&self, peer: IpAddr) -> String {
        let names = self.of(peer).unwrap_or_default();
        // The first one is the address.
        names.get(1..).unwrap_or_default().join(" ")
    }

    /// Looks a peer up and waits for the answer: for tools, never for a server.
    pub(crate) fn learn(&self, peer: IpAddr) {
        self.0.look_up_and_keep(peer);
    }

    fn start_thread(&self) {
        let book = Arc::clone(&self.0);
        let thread = std::thread::Builder::new().name("lookup".into());
        if thread.stack_size(LOOKUP_STACK_BYTES).spawn(move || book.work()).is_err() {
            self.0.table().give_up();
        }
    }
}

impl Book {
    /// Looks up waiting addresses until there are none: the main function of a thread.
    fn work(&self) {
        loop {
            let mut table = self.table();
            let Some(peer) = table.waiting.pop_front() else {
                table.threads -= 1;
                return;
            };
            drop(table);
            self.look_up_and_keep(peer);
        }
    }

    fn look_up_and_keep(&self, peer: IpAddr) {
        let begun = Instant::now();
        // A resolver that panics must not end the thread, nor lose the address.
        let found = catch_unwind(AssertUnwindSafe(|| self.look_up(peer)));
        self.table().keep(peer, found.unwrap_or(Err(Status::Delay)), begun.elapsed());
    }

    fn look_up(&self, peer: IpAddr) -> Result<Arc<[Box<str>]>> {
        let mut names: Vec<Box<str>> = vec![peer.to_string().into()];
        let claimed = match self.resolver.name(peer) {
            Ok(name) => name.trim_end_matches('.').to_ascii_lowercase(),
            Err(Unresolved::Unknown) => return Ok(names.into()),
            Err(Unresolved::Failed(_)) => return Err(Status::Delay),
        };
        if claimed.len() <= NAME_BYTES_MAX && self.confirms(&claimed, peer)? {
            let short = claimed.split('.').next().unwrap_or_default();
            if short.len() < claimed.len() && self.confirms(short, peer)? {
                names.push(short.into());
            }
            names.push(claimed.into());
        }
        Ok(names.into())
    }

    fn confirms(&self, name: &str, peer: IpAddr) -> Result<bool> {
        match self.resolver.addresses(name) {
            Ok(addresses) => Ok(addresses.contains(&peer)),
            Err(Unresolved::Unknown) => Ok(false),
            Err(Unresolved::Failed(_)) => Err(Status::Delay),
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the known names; the next look-up of each is due.
    fn still_known(&self) -> HashMap<IpAddr, Known> {
        let due = |known: &Known| Known { names: known.names.clone(), again: None };
        let named = self.known.iter().filter(|(_, known)| known.names.is_some());
        named.map(|(peer, known)| (*peer, due(known))).collect()
    }

    /// Queues an address for a look-up, unless it is queued already or the queue is full; returns
    /// whether another thread must be started. Existing threads are all busy, since idle ones end.
    fn enqueue(&mut self, peer: IpAddr) -> bool {
        let asker = network_of(peer);
        let of_asker = || self.asked.iter().filter(|other| network_of(**other) == asker).count();
        if self.asked.contains(&peer)
            || self.waiting.len() >= LOOKUPS_WAITING_MAX
            || of_asker() >= LOOKUPS_PER_ASKER_MAX
        {
            return false;
        }
        self.asked.insert(peer);
        self.waiting.push_back(peer);
        let starts = self.threads < LOOKUP_THREADS_MAX;
        self.threads += usize::from(starts);
        starts
    }

    /// Notes that a thread could not be started. If there is no other, the queue is cleared.
    fn give_up(&mut self) {
        self.threads -= 1;
        if self.threads == 0 {
            self.waiting.clear();
            self.asked.clear();
        }
    }

    /// Stores the result of a look-up that took this long.
    fn keep(&mut self, peer: IpAddr, found: Result<Arc<[Box<str>]>>, took: Duration) {
        let now = Instant::now();
        self.asked.remove(&peer);
        self.make_room(now);
        let known = self.known.entry(peer).or_default();
        let pause = match found {
            Ok(names) => {
                known.names = Some((names, now));
                Duration::from_secs(NAME_SECONDS)
            }
            Err(_) => Duration::from_secs(NAME_FAILURE_SECONDS).max(took * LOOKUP_PAUSE),
        };
        known.again = Some(now + pause);
    }

    /// Removes names that are too old, then addresses without names, then all, until there is room.
    fn make_room(&mut self, now: Instant) {
        if self.known.len() >= NAMES_MAX {
            self.known.retain(|_, known| known.names(now).is_some() || !known.is_due(now));
        }
        if self.known.len() >= NAMES_MAX {
            self.known.retain(|_, known| known.names(now).is_some_and(|names| names.len() > 1));
        }
        if self.known.len() >= NAMES_MAX {
            self.known.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A resolver with a fixed table, which counts the questions. It never answers for
    /// 203.0.113.0/24 and for IPv6 addresses.
    #[derive(Default)]
    struct Phonebook {
        asked: AtomicUsize,
    }

    impl Resolver for Phonebook {
        fn addresses(&self, name: &str) -> std::result::Result<Vec<IpAddr>, Unresolved> {
            match name {
                "a.example.org" | "a" => Ok(vec![peer(1)]),
                "b.example.org" => Ok(vec![peer(2)]),
                "broken" => Err(Unresolved::Failed("no server".into())),
                _ => Err(Unresolved::Unknown),
            }
        }

        fn name(&self, address: IpAddr) -> std::result::Result<String, Unresolved> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            match address {
                IpAddr::V6(_) => never(),
                IpAddr::V4(four) if four.octets()[0] == 203 => never(),
                _ if address == peer(1) => Ok("A.example.org.".into()),
                _ if address == peer(2) => Ok("b.example.org".into()),
                _ if address == peer(3) => Ok("a.example.org".into()),
                _ if address == peer(4) => Err(Unresolved::Failed("no server".into())),
                _ if address == peer(5) => Ok("broken".into()),
                _ if address == peer(6) => panic!("so it was asked"),
                _ => Err(Unresolved::Unknown),
            }
        }
    }

    fn never() -> ! {
        loop {
            std::thread::park();
        }
    }

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn stuck(last: u8) -> IpAddr {
        Ipv4Addr::new(203, 0, 113, last).into()
    }

    fn names() -> (HostCache, Arc<Phonebook>) {
        let book = Arc::<Phonebook>::default();
        (HostCache::new(Arc::clone(&book) as Arc<dyn Resolver>, None), book)
    }

    /// Returns the names of an address after its lookup has ended.
    fn of(names: &HostCache, last: u8) -> Result<Vec<String>> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut found = names.of(peer(last));
        while names.0.table().asked.contains(&peer(last)) {
            assert!(Instant::now() < deadline, "a lookup does not end");
            std::thread::sleep(Duration::from_millis(1));
            found = names.of(peer(last));
        }
        let found = found.or_else(|_| names.of(peer(last)));
        found.map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_name_is_used_only_if_it_resolves_to_the_address() {
        let (names, _) = names();
        assert_eq!(of(&names, 1).unwrap(), ["192.0.2.1", "a", "a.example.org"]);
        assert_eq!(of(&names, 2).unwrap(), ["192.0.2.2", "b.example.org"], "short name unknown");
        assert_eq!(of(&names, 3).unwrap(), ["192.0.2.3"], "claims the name of another");
        assert_eq!(of(&names, 9).unwrap(), ["192.0.2.9"]);
    }

    #[test]
    fn conditions_see_no_name_until_one_is_known_and_never_the_address() {
        let (names, _) = names();
        let begun = Instant::now();
        assert_eq!(names.known_names(stuck(1)), "");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let _ = (of(&names, 1), of(&names, 9));
        assert_eq!(names.known_names(peer(1)), "a a.example.org");
        assert_eq!(names.known_names(peer(9)), "");
    }

    #[test]
    fn a_failed_lookup_is_no_answer() {
        let (names, _) = names();
        for failing in [4, 5, 6] {
            assert_eq!(of(&names, failing), Err(Status::Delay));
        }
        assert_eq!(names.0.table().asked.len(), 0);
        assert!(of(&names, 1).is_ok());
    }

    #[test]
    fn answers_are_kept_for_a_while() {
        let (names, book) = names();
        for _ in 0..3 {
            let _ = (of(&names, 1), of(&names, 4));
        }
        assert_eq!(book.asked.load(Ordering::Relaxed), 2);
        for _ in 0..3 {
            names.0.table().known.clear();
            let _ = of(&names, 1);
        }
        assert_eq!(book.asked.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn names_stay_known_when_another_plan_comes_into_force() {
        let (old, book) = names();
        let known = of(&old, 1).unwrap();
        let stranger = stuck(1);
        assert_eq!(old.of(stranger), Err(Status::Delay));
        let new = HostCache::new(Arc::clone(&book) as Arc<dyn Resolver>, Some(&old));
        let names: Vec<_> = new.of(peer(1)).unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, known, "at once");
        assert!(old.0.table().still_known().values().all(|known| known.again.is_none()), "due");
        assert_eq!(new.of(stranger), Err(Status::Delay));
    }

    #[test]
    fn a_name_stays_known_during_and_after_a_failed_lookup() {
        let (names, _) = names();
        let known: Arc<[Box<str>]> = ["203.0.113.1".into(), "old.example.org".into()].into();
        for failing in [peer(4), stuck(1)] {
            names.0.table().keep(failing, Ok(Arc::clone(&known)), Duration::ZERO);
            names.0.table().known.get_mut(&failing).unwrap().again = None;
            assert_eq!(names.of(failing), Ok(Arc::clone(&known)), "while it is looked up");
        }
        let deadline = Instant::now() + Duration::from_secs(10);
        while names.0.table().asked.contains(&peer(4)) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(names.of(peer(4)), Ok(known), "after the lookup failed");
        let too_old = Instant::now().checked_sub(Duration::from_secs(NAME_STALE_SECONDS));
        if let Some(too_old) = too_old {
            let mut table = names.0.table();
            let known = table.known.get_mut(&peer(4)).unwrap();
            known.names.as_mut().unwrap().1 = too_old;
            drop(table);
            assert_eq!(names.of(peer(4)), Err(Status::Delay), "but not forever");
        }
    }

    #[test]
    fn kept_names_are_bounded_and_outlast_strangers_without_a_name() {
        let (names, _) = names();
        assert!(of(&names, 1).is_ok());
        for number in 0..NAMES_MAX as u32 + 10 {
            let stranger = IpAddr::from(Ipv4Addr::from_bits(number));
            let nameless: Arc<[Box<str>]> = [stranger.to_string().into()].into();
            names.0.table().keep(stranger, Ok(nameless), Duration::ZERO);
        }
        assert!(names.0.table().known.len() <= NAMES_MAX);
        assert!(names.0.table().known.contains_key(&peer(1)));
    }

    #[test]
    fn strangers_whose_names_are_never_found_delay_nobody() {
        let (names, _) = names();
        let begun = Instant::now();
        for last in 0..4 {
            assert_eq!(names.of(stuck(last)), Err(Status::Delay));
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert!(of(&names, 1).is_ok(), "another name is still found");
    }

    #[test]
    fn lookups_are_bounded_by_network_and_in_all() {
        let (names, _) = names();
        for number in 0..100 {
            let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, number);
            assert_eq!(names.of(address.into()), Err(Status::Delay));
        }
        assert_eq!(names.0.table().asked.len(), LOOKUPS_PER_ASKER_MAX);
        assert!(of(&names, 1).is_ok());
        for _ in 0..2 {
            (0..=255).for_each(|last| drop(names.of(stuck(last))));
        }
        let table = names.0.table();
        assert!(table.threads <= LOOKUP_THREADS_MAX);
        assert!(table.asked.len() <= LOOKUP_THREADS_MAX + LOOKUPS_WAITING_MAX);
    }

    #[test]
    fn an_address_that_took_long_is_retried_later() {
        let (names, _) = names();
        let took = Duration::from_secs(20);
        names.0.table().keep(stuck(1), Err(Status::Delay), took);
        let table = names.0.table();
        let again = table.known[&stuck(1)].again.unwrap();
        assert!(again > Instant::now() + took * (LOOKUP_PAUSE - 1));
    }
}
