//! Hosts of NLM: they are found by name, and lose their locks when they restart.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::client::NewClient;
use crate::file::Holder;
use crate::{
    Caller, Client, ClientOwner, ClientProtocol, Engine, Origin, Principal, Result, Verifier,
};

impl Engine {
    /// Returns the host of this name, and adds it if it is unknown. A new host is recorded, and the
    /// reply must wait for [`Engine::unstored`].
    ///
    /// # Errors
    /// [`crate::Error::Delay`]: there are too many clients, or too many of this origin.
    pub fn host(&self, now: Duration, name: &[u8], origin: Origin) -> Result<Arc<Client>> {
        let mut names = self.clients.names();
        if let Some(host) = names.host(name) {
            host.renew(now);
            return Ok(host);
        }
        let owner = ClientOwner { verifier: Verifier::default(), id: name.into() };
        let caller = Caller { principal: Principal::default(), origin };
        let birth = NewClient { protocol: ClientProtocol::Nlm, owner, caller, announced: None };
        let host = self.introduce(now, &mut names, birth)?;
        self.confirm(&mut names, &host);
        Ok(host)
    }

    /// Returns the host of this name, if it is known. An unknown host has no locks.
    #[must_use]
    pub fn known_host(&self, now: Duration, name: &[u8]) -> Option<Arc<Client>> {
        self.clients.names().host(name).inspect(|host| host.renew(now))
    }

    /// Returns the names of the hosts that have locks, shares or waiting owners in one of these
    /// exports, and during grace of those that may reclaim: it is not known where.
    #[must_use]
    pub fn hosts_in(&self, exports: &[u32]) -> BTreeSet<Box<[u8]>> {
        let is_in = |client: &Client| {
            client.state().holdings.states().any(|(_, it)| exports.contains(&it.file.key.export))
        };
        let clients = self.clients.all();
        let hosts = clients.iter().filter(|client| client.protocol == ClientProtocol::Nlm);
        let present = hosts.filter(|host| is_in(host)).map(|host| host.owner().into());
        present.chain(self.grace.expected_hosts()).collect()
    }

    /// FREE_ALL: forgets a host and all its locks.
    pub fn forget_host(&self, now: Duration, name: &[u8]) {
        if let Some(host) = self.known_host(now, name) {
            self.evict(now, &host);
        }
    }

    /// SM_NOTIFY: a host has restarted for the `state`-th time. Its locks are freed, except those
    /// it has requested since the restart, because the notice may come late or twice.
    pub fn host_began_anew(&self, now: Duration, name: &[u8], state: i32) {
        match self.known_host(now, name) {
            Some(host) if host.monitor_state() == state => self.release_before(now, &host, state),
            Some(host) => self.evict(now, &host),
            None => {}
        }
    }

    /// Frees the locks that were last requested before the host restarted for the `state`-th time.
    fn release_before(&self, now: Duration, host: &Client, state: i32) {
        let mut held = host.state();
        let mut wakes = Vec::new();
        for number in held.holdings.asked_before(state) {
            let Some(stale) = held.holdings.remove(number) else { continue };
            stale.owner().into_iter().for_each(|owner| held.holdings.forget_idle(owner));
            self.release_state(now, Holder { client: host.id, state: number }, &stale, &mut wakes);
        }
        drop(held);
        self.announce(wakes);
    }
}
