//! Revoked states whose client has not freed them.

use std::time::Duration;

use crate::client_state::{State, StateKind};
use crate::{Client, ClientProtocol, Engine, Record};

impl Engine {
    /// Forgets revoked states of clients that were told of them for the time of a lease.
    ///
    /// By RFC 8881 (18.46.3) the server tells a client until it has freed all of them. But a client
    /// may have forgotten such a state: its CLOSE was refused because it no longer had a right to
    /// the file. Linux would then test all its stateids after each SEQUENCE, for ever. The stateid
    /// of a forgotten state gets BAD_STATEID, which clients handle like a revoked one. In minor
    /// version 0, where no SEQUENCE tells the client, the time counts from the revocation.
    pub(crate) fn forget_lapsed(&self, now: Duration) {
        let clients = self.clients.all();
        let revoked = clients.iter().filter(|client| client.has_revoked());
        revoked.for_each(|client| self.forget_lapsed_of(now, client));
    }

    fn forget_lapsed_of(&self, now: Duration, client: &Client) {
        let before = now.checked_sub(self.settings.lease);
        let is_told = client.told().zip(before).is_some_and(|(told, before)| told <= before);
        let has_sessions = client.protocol == ClientProtocol::ExchangeId;
        if has_sessions && !is_told {
            return;
        }
        let mut state = client.state();
        let lapsed = |state: &State| match state.what {
            StateKind::Revoked(revoked) => {
                revoked.why.may_lapse() && (has_sessions || state.age(now) >= self.settings.lease)
            }
            _ => false,
        };
        let lapsed = state.holdings.states().filter(|(_, state)| lapsed(state));
        let lapsed: Vec<u32> = lapsed.map(|(number, _)| number).collect();
        lapsed.iter().for_each(|number| drop(state.holdings.remove(*number)));
        client.note_revoked(&state);
        if has_sessions && !lapsed.is_empty() && state.holdings.counts().revoked == 0 {
            self.record(Record::RevocationsKnown(client.recorded()));
        }
    }
}
