use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{Result, Status};

use crate::limits::{LOOKUPS_MAX, NAME_BYTES_MAX, NAME_FAILURE_SECONDS, NAME_SECONDS, NAMES_MAX};
use crate::{Resolver, Unresolved};

/// The names of the addresses that came, as long as one plan is in force. A look-up blocks its
/// caller, so only strangers cause one, and only where an entry by name may decide about them.
pub(crate) struct Names {
    resolver: Arc<dyn Resolver>,
    kept_for: (Duration, Duration),
    under_way: AtomicUsize,
    known: Mutex<HashMap<IpAddr, Known>>,
}

struct Known {
    names: Result<Arc<[Box<str>]>>,
    until: Instant,
}

impl Names {
    pub(crate) fn new(resolver: Arc<dyn Resolver>) -> Self {
        let kept_for =
            (Duration::from_secs(NAME_SECONDS), Duration::from_secs(NAME_FAILURE_SECONDS));
        Self { resolver, kept_for, under_way: AtomicUsize::new(0), known: Mutex::default() }
    }

    /// What a peer is called, as its name's owner confirms: its full name, and the short one if
    /// that is known here too; and its address in text.
    ///
    /// # Errors
    /// [`Status::Delay`] if it cannot be told now. Then a wider entry must not decide: its rules
    /// may be softer than those by name.
    pub(crate) fn of(&self, peer: IpAddr) -> Result<Arc<[Box<str>]>> {
        if let Some(names) = self.kept(peer) {
            return names;
        }
        let permit = self.under_way.fetch_add(1, Ordering::Relaxed) < LOOKUPS_MAX;
        let names = if permit { self.look_up(peer) } else { Err(Status::Delay) };
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        if permit {
            self.keep(peer, &names);
        }
        names
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

    fn kept(&self, peer: IpAddr) -> Option<Result<Arc<[Box<str>]>>> {
        let known = self.known();
        let found = known.get(&peer).filter(|known| known.until > Instant::now())?;
        Some(found.names.clone())
    }

    fn keep(&self, peer: IpAddr, names: &Result<Arc<[Box<str>]>>) {
        let now = Instant::now();
        let until = now + if names.is_ok() { self.kept_for.0 } else { self.kept_for.1 };
        let mut known = self.known();
        if known.len() >= NAMES_MAX {
            known.retain(|_, known| known.until > now);
        }
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        known.insert(peer, Known { names: names.clone(), until });
    }

    fn known(&self) -> MutexGuard<'_, HashMap<IpAddr, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    /// Answers from a table and counts the questions.
    #[derive(Default)]
    struct Book {
        asked: AtomicUsize,
    }

    impl Resolver for Book {
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
                _ if address == peer(1) => Ok("A.example.org.".into()),
                _ if address == peer(2) => Ok("b.example.org".into()),
                _ if address == peer(3) => Ok("a.example.org".into()),
                _ if address == peer(4) => Err(Unresolved::Failed("no server".into())),
                _ if address == peer(5) => Ok("broken".into()),
                _ => Err(Unresolved::Unknown),
            }
        }
    }

    fn peer(last: u8) -> IpAddr {
        Ipv4Addr::new(192, 0, 2, last).into()
    }

    fn of(names: &Names, last: u8) -> Result<Vec<String>> {
        names.of(peer(last)).map(|names| names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_name_counts_only_if_it_leads_back() {
        let names = Names::new(Arc::new(Book::default()));
        assert_eq!(of(&names, 1).unwrap(), ["192.0.2.1", "a", "a.example.org"]);
        assert_eq!(of(&names, 2).unwrap(), ["192.0.2.2", "b.example.org"], "short name unknown");
        assert_eq!(of(&names, 3).unwrap(), ["192.0.2.3"], "claims the name of another");
        assert_eq!(of(&names, 9).unwrap(), ["192.0.2.9"]);
    }

    #[test]
    fn a_failed_look_up_is_no_answer() {
        let names = Names::new(Arc::new(Book::default()));
        assert_eq!(of(&names, 4), Err(Status::Delay));
        assert_eq!(of(&names, 5), Err(Status::Delay));
    }

    #[test]
    fn answers_are_kept_for_a_while() {
        let book = Arc::new(Book::default());
        let mut names = Names::new(Arc::clone(&book) as Arc<dyn Resolver>);
        for _ in 0..3 {
            let _ = (of(&names, 1), of(&names, 4));
        }
        assert_eq!(book.asked.load(Ordering::Relaxed), 2);
        names.kept_for = (Duration::ZERO, Duration::ZERO);
        names.known().clear();
        for _ in 0..3 {
            let _ = of(&names, 1);
        }
        assert_eq!(book.asked.load(Ordering::Relaxed), 5);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let names = Names::new(Arc::new(Book::default()));
        for number in 0..NAMES_MAX as u32 + 10 {
            let _ = names.of(Ipv4Addr::from_bits(number).into());
        }
        assert!(names.known().len() <= NAMES_MAX);
    }

    #[test]
    fn only_so_many_are_looked_up_at_once() {
        let names = Names::new(Arc::new(Book::default()));
        names.under_way.store(LOOKUPS_MAX, Ordering::Relaxed);
        assert_eq!(of(&names, 1), Err(Status::Delay));
        names.under_way.store(0, Ordering::Relaxed);
        assert!(of(&names, 1).is_ok());
    }
}
