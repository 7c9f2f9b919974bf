//! The files that clients hold by grants.

use std::sync::Arc;

use crate::{Client, Engine, FileKey, Grantee};

/// The files that a client holds by grants, each as often as it has opens and delegations of it. A
/// state that has ended meanwhile is left out, and so is one that was made meanwhile. The client's
/// lock is taken for each of them for a moment.
#[derive(Debug)]
pub struct GrantedFiles {
    client: Arc<Client>,
    numbers: std::vec::IntoIter<u32>,
}

impl GrantedFiles {
    /// Returns the client.
    #[must_use]
    pub const fn client(&self) -> &Arc<Client> {
        &self.client
    }
}

impl Iterator for GrantedFiles {
    type Item = (FileKey, Arc<Grantee>);

    fn next(&mut self) -> Option<Self::Item> {
        let client = &self.client;
        self.numbers.find_map(|number| {
            let state = client.state();
            let held = state.holdings.get(number)?;
            held.what.grantee().map(|grantee| (held.file.key, Arc::clone(grantee)))
        })
    }
}

impl Engine {
    /// Returns the clients with state that rests on grants, in the order in which they were
    /// created. A client without such state costs one atomic load.
    #[must_use]
    pub fn grantee_clients(&self) -> Vec<Arc<Client>> {
        let mut clients = self.clients.all();
        clients.retain(|client| client.has_grantees() && rests_on_grants(client));
        clients
    }

    /// Returns the files that a client holds by grants.
    #[must_use]
    pub fn granted_files(&self, client: &Arc<Client>) -> GrantedFiles {
        let state = client.state();
        let states = state.holdings.states();
        let numbers = states.filter(|(_, state)| state.what.grantee().is_some());
        let mut numbers: Vec<u32> = numbers.map(|(number, _)| number).collect();
        drop(state);
        numbers.sort_unstable();
        GrantedFiles { client: Arc::clone(client), numbers: numbers.into_iter() }
    }
}

fn rests_on_grants(client: &Client) -> bool {
    let state = client.state();
    client.note_grantees(&state);
    state.holdings.rest_on_grants()
}
