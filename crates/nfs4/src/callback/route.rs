//! Routes of callbacks: a slot and a connection of one of the client's sessions, or a connection
//! that the server has made.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use comity_rpc::Backchannel;
use comity_state::{BackChannel, Client, ClientId, Engine, Session, SessionId};

use super::call::Sequence;

/// The slots of a session's back channel.
#[derive(Debug, Default)]
struct Slots(Vec<Slot>);

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// The sequenceid of the last call that the client executed.
    seqid: u32,
    busy: bool,
}

/// The connections and slots by which clients are reached.
#[derive(Debug, Default)]
pub(super) struct Routes {
    lines: HashMap<u64, Weak<Backchannel>>,
    dialled: HashMap<ClientId, (SocketAddr, Arc<Backchannel>)>,
    slots: HashMap<SessionId, Slots>,
}

/// The reason why a client cannot be called at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoWay {
    /// All slots of the session are in use.
    Busy,
    /// No connection is open.
    Closed,
}

/// A route to a client on which a call can be sent now.
pub(super) struct Route {
    pub(super) line: Arc<Backchannel>,
    pub(super) channel: BackChannel,
    session: SessionId,
}

impl Routes {
    /// Adds a connection over which a client may be called.
    pub(super) fn add_line(&mut self, line: &Arc<Backchannel>) {
        if self.lines.len().is_power_of_two() {
            self.lines.retain(|_, line| line.strong_count() > 0);
        }
        self.lines.insert(line.id(), Arc::downgrade(line));
    }

    /// Returns the connection that was made to a client of minor version 0, if it is still open and
    /// the client's callback address is still `to`.
    pub(super) fn dialled(&mut self, client: ClientId, to: SocketAddr) -> Option<Arc<Backchannel>> {
        let (address, line) = self.dialled.get(&client)?;
        (*address == to && !line.is_closed()).then(|| Arc::clone(line))
    }

    pub(super) fn keep_dialled(
        &mut self,
        client: ClientId,
        to: SocketAddr,
        line: &Arc<Backchannel>,
    ) {
        if self.dialled.len().is_power_of_two() {
            self.dialled.retain(|_, (_, line)| !line.is_closed());
        }
        if let Some((_, old)) = self.dialled.insert(client, (to, Arc::clone(line))) {
            old.close();
        }
    }

    /// Returns whether a call with this xid was ever sent on a connection that is still open.
    pub(super) fn has_called(&self, line: u64, xid: u32) -> bool {
        let dialled = || self.dialled.values().find(|(_, known)| known.id() == line);
        let known = self.lines.get(&line).and_then(Weak::upgrade);
        let known = known.or_else(|| dialled().map(|(_, line)| Arc::clone(line)));
        known.is_some_and(|line| line.has_numbered(xid))
    }

    /// Returns a connection of one of the client's sessions. The newest session and its newest
    /// connection are preferred.
    pub(super) fn find(&self, engine: &Engine, client: &Client) -> Result<Route, NoWay> {
        let sessions = client.sessions();
        let mut sessions = sessions.iter().rev().filter_map(|id| engine.session(id));
        sessions.find_map(|session| self.through(&session)).ok_or(NoWay::Closed)
    }

    /// Returns a connection of this session.
    pub(super) fn of_session(&self, engine: &Engine, id: &SessionId) -> Result<Route, NoWay> {
        let session = engine.session(id);
        session.and_then(|session| self.through(&session)).ok_or(NoWay::Closed)
    }

    fn through(&self, session: &Session) -> Option<Route> {
        let channel = session.back()?;
        let open = |id: &u64| self.lines.get(id)?.upgrade().filter(|line| !line.is_closed());
        let line = session.back_connections().iter().rev().find_map(|id| open(&id.0))?;
        Some(Route { line, channel, session: session.id() })
    }

    /// Returns a slot for a call on a route, if one is free.
    pub(super) fn take_slot(&mut self, engine: &Engine, route: &Route) -> Option<Sequence> {
        let highest_slot = route.channel.attrs.requests_max.saturating_sub(1);
        if self.slots.len().is_power_of_two() && !self.slots.contains_key(&route.session) {
            self.slots.retain(|id, _| engine.session(id).is_some());
        }
        let slots = self.slots.entry(route.session).or_default();
        let (slot, seqid) = slots.take(highest_slot)?;
        Some(Sequence { session: route.session, slot, seqid, highest_slot })
    }

    /// Frees the slot of a call. If the client used the slot, the next call has the next
    /// sequenceid. If that is unknown, the next call has the same sequenceid, which makes it a
    /// retry.
    pub(super) fn release(&mut self, sequence: Sequence, used: bool) {
        let slots = self.slots.get_mut(&sequence.session);
        if let Some(slot) = slots.and_then(|slots| slots.0.get_mut(sequence.slot as usize)) {
            slot.busy = false;
            slot.seqid = if used { sequence.seqid } else { slot.seqid };
        }
    }
}

impl Slots {
    /// Returns a free slot, and the sequenceid of its next call.
    fn take(&mut self, highest: u32) -> Option<(u32, u32)> {
        let wanted = highest as usize + 1;
        let free = self.0.iter().take(wanted).position(|slot| !slot.busy);
        let at = match free {
            Some(at) => at,
            None if self.0.len() < wanted => {
                self.0.push(Slot::default());
                self.0.len() - 1
            }
            None => return None,
        };
        let slot = self.0.get_mut(at)?;
        slot.busy = true;
        Some((at as u32, slot.seqid.wrapping_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_once_and_no_more_than_agreed() {
        let mut slots = Slots::default();
        assert_eq!(slots.take(1), Some((0, 1)));
        assert_eq!(slots.take(1), Some((1, 1)));
        assert_eq!(slots.take(1), None);
    }

    #[test]
    fn a_client_that_moved_is_not_called_at_its_old_address() {
        let (client, mut routes) = (ClientId(7), Routes::default());
        let [old, new] = [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let line = Arc::new(Backchannel::new(|| {}));
        routes.keep_dialled(client, old, &line);
        assert!(routes.dialled(client, old).is_some());
        assert!(routes.dialled(client, new).is_none());
        routes.keep_dialled(client, new, &Arc::new(Backchannel::new(|| {})));
        assert!(line.is_closed(), "the connection is no longer needed");
    }

    #[test]
    fn a_number_is_used_only_when_the_client_accepted_it() {
        let session = SessionId([1; 16]);
        let mut routes = Routes::default();
        let taken = |routes: &mut Routes| {
            let (slot, seqid) = routes.slots.entry(session).or_default().take(0).unwrap();
            Sequence { session, slot, seqid, highest_slot: 0 }
        };
        let first = taken(&mut routes);
        routes.release(first, false);
        let again = taken(&mut routes);
        assert_eq!((first.seqid, again.seqid), (1, 1));
        routes.release(again, true);
        assert_eq!(taken(&mut routes).seqid, 2);
    }
}
