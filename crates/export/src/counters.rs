//! Counters of each domain at an export. They count calls that are refused or squashed and objects
//! that are hidden, and nothing else.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Client, RuleSource};

/// The counters of one domain at one export, or of one client that belongs to no domain.
#[derive(Debug, Default)]
pub struct ClientCounters {
    name: Box<str>,
    is_domain: bool,
    refused: AtomicU64,
    squashed: AtomicU64,
    hidden: AtomicU64,
}

/// The values of the counters at one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Calls that were refused: because of an id that is denied, a port or a credential that the
    /// rules do not allow, or a client that matches no entry.
    pub refused: u64,
    /// Accepted calls whose user or group was replaced by the anonymous one.
    pub squashed: u64,
    /// Entries that a cloak left out of listings, and names and handles that it made look
    /// nonexistent.
    pub hidden: u64,
}

impl ClientCounters {
    /// Returns the domain's name, or else the client as it is written; empty for clients that match
    /// no entry.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether the name is that of a domain.
    #[must_use]
    pub const fn is_domain(&self) -> bool {
        self.is_domain
    }

    /// Returns the values of the counters.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            refused: of(&self.refused),
            squashed: of(&self.squashed),
            hidden: of(&self.hidden),
        }
    }

    pub(crate) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn squash(&self) {
        self.squashed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn hide(&self, entries: u64) {
        if entries > 0 {
            self.hidden.fetch_add(entries, Ordering::Relaxed);
        }
    }
}

/// The counters of an export.
#[derive(Debug, Default)]
pub(crate) struct ExportCounters {
    /// The counters of each client; clients of a domain share them.
    by_client: Vec<Arc<ClientCounters>>,
    /// All counters, each once.
    all: Vec<Arc<ClientCounters>>,
    strangers: Arc<ClientCounters>,
}

impl ExportCounters {
    /// Makes counters for clients at these locations, but keeps the counters of clients that `old`
    /// has, too.
    pub(crate) fn new<'a>(
        clients: impl Iterator<Item = (&'a Client, Option<&'a RuleSource>)>,
        old: Option<&Self>,
    ) -> Self {
        let kept = old.map_or(&[][..], |old| &old.all);
        let mut known: HashMap<(bool, Box<str>), Arc<ClientCounters>> = kept
            .iter()
            .map(|counters| ((counters.is_domain, counters.name.clone()), Arc::clone(counters)))
            .collect();
        let (mut by_client, mut all): (Vec<_>, Vec<Arc<ClientCounters>>) = (Vec::new(), Vec::new());
        let mut listed = HashSet::new();
        for (client, origin) in clients {
            let domain = origin.and_then(|origin| origin.domain.as_deref());
            let name: Box<str> = domain.map_or_else(|| client.to_string(), str::to_owned).into();
            let key = (domain.is_some(), name.clone());
            let made = || {
                Arc::new(ClientCounters {
                    name,
                    is_domain: domain.is_some(),
                    ..ClientCounters::default()
                })
            };
            let counters = known.entry(key.clone()).or_insert_with(made);
            if listed.insert(key) {
                all.push(Arc::clone(counters));
            }
            by_client.push(Arc::clone(counters));
        }
        let strangers = old.map_or_else(Arc::default, |old| Arc::clone(&old.strangers));
        Self { by_client, all, strangers }
    }

    pub(crate) fn by_client(&self) -> &[Arc<ClientCounters>] {
        &self.by_client
    }

    /// Returns the counters of peers that match no entry.
    pub(crate) fn strangers(&self) -> &Arc<ClientCounters> {
        &self.strangers
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<ClientCounters>> {
        self.all.iter().chain([&self.strangers])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Location;

    fn origin(domain: Option<&str>) -> RuleSource {
        let domain = domain.map(Arc::from);
        RuleSource { domain, ..RuleSource::new(Location::file("e")) }
    }

    fn named(counters: &ExportCounters) -> Vec<(String, bool, u64)> {
        let row = |counters: &Arc<ClientCounters>| {
            (counters.name().to_owned(), counters.is_domain(), counters.counts().refused)
        };
        counters.all().map(row).collect()
    }

    #[test]
    fn clients_of_a_domain_count_together_and_go_on_over_a_reload() {
        let (domain, none) = (origin(Some("*")), origin(None));
        let [one, other] = ["::1", "::2"].map(|text| Client::parse(text).unwrap());
        let everybody = Client::Everybody;
        let clients = [(&one, &domain), (&other, &domain), (&everybody, &none)];
        let counters = ExportCounters::new(clients.into_iter().map(|(c, o)| (c, Some(o))), None);
        counters.by_client().iter().for_each(|counters| counters.refuse());
        counters.strangers().refuse();
        let row = |name: &str, is_domain, refused| (name.to_owned(), is_domain, refused);
        let counted = [row("*", true, 2), row("*", false, 1), row("", false, 1)];
        assert_eq!(named(&counters), counted, "a client may be spelled like a domain");
        let after = [(&other, Some(&domain))];
        let after = ExportCounters::new(after.into_iter(), Some(&counters));
        assert_eq!(named(&after), [row("*", true, 2), row("", false, 1)]);
    }
}
