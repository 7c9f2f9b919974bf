use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::{Birth, Client};
use crate::hosts::Hosts;
use crate::numbers::Numbers;
use crate::pool::Pool;
use crate::sync::atomic::{AtomicU32, Ordering};
use crate::sync::{Mutex, MutexGuard};
use crate::table::{Table, lock};
use crate::{ClientId, Desk};

/// All clients: by number, and by the name they go by. The lock of the names is the outermost of
/// all and is taken only when clients come and go.
pub(crate) struct Clients {
    boot: u32,
    by_number: Table<u32, Client, Numbers>,
    by_name: Mutex<Names>,
    next: AtomicU32,
    pub(crate) hosts: Hosts,
}

/// Who goes by which name.
pub(crate) type Names = HashMap<(Desk, Box<[u8]>), Named>;

/// The clients of one name: at most one that is confirmed, and one that wants to take its place.
#[derive(Default)]
pub(crate) struct Named {
    pub(crate) confirmed: Option<Arc<Client>>,
    pub(crate) unconfirmed: Option<Arc<Client>>,
}

impl Clients {
    pub(crate) fn new(boot: u32) -> Self {
        let (by_number, by_name) = (Table::new(), Mutex::default());
        let (next, hosts) = (AtomicU32::new(1), Hosts::default());
        Self { boot, by_number, by_name, next, hosts }
    }

    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.by_name)
    }

    pub(crate) fn get(&self, id: ClientId) -> Option<Arc<Client>> {
        if id.boot() == self.boot { self.by_number.get(&id.number()) } else { None }
    }

    /// All of them, in the order in which they came: what is done to them in turn is done in the
    /// same order each time.
    pub(crate) fn all(&self) -> Vec<Arc<Client>> {
        let mut all = self.by_number.all();
        all.sort_unstable_by_key(|client| client.id);
        all
    }

    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// A clientid that no client of this life has.
    pub(crate) fn next_id(&self) -> ClientId {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number != 0 && self.by_number.get(&number).is_none() {
                return ClientId::new(self.boot, number);
            }
        }
    }

    pub(crate) fn insert(&self, now: Duration, birth: Birth, held: &Arc<Pool>) -> Arc<Client> {
        let client = Arc::new(Client::new(now, birth, held));
        self.by_number.insert(client.id.number(), Arc::clone(&client));
        if client.desk == Desk::Nlm {
            self.hosts.add(&client.owner);
        }
        client
    }

    pub(crate) fn remove(&self, names: &mut Names, client: &Arc<Client>) {
        self.by_number.remove(&client.id.number());
        if client.desk == Desk::Nlm {
            self.hosts.remove(&client.owner);
        }
        let name = (client.desk, client.owner.clone());
        let Some(named) = names.get_mut(&name) else { return };
        for place in [&mut named.confirmed, &mut named.unconfirmed] {
            if place.as_ref().is_some_and(|other| super::same(other, client)) {
                *place = None;
            }
        }
        if named.confirmed.is_none() && named.unconfirmed.is_none() {
            names.remove(&name);
        }
    }
}
