//! Slots are recalled when the memory for replies becomes short (RFC 8881, 20.8).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::{Effect, Engine, Session, SessionId};

impl Engine {
    /// Lowers the target of the largest sessions of those clients that use most memory, until
    /// enough will be freed. The clients are told by CB_RECALL_SLOT and in their next SEQUENCE.
    /// Slots are freed only when a client has followed.
    pub(crate) fn recall_slots(&self, now: Duration) {
        if self.reply_cache.wanted_bytes() == 0 {
            return;
        }
        self.drop_forsaken_sessions(now);
        let mut wanted = self.reply_cache.wanted_bytes();
        let mut sessions = self.sessions.all();
        sessions.sort_by_cached_key(|session| {
            let (all, bytes) = (session.client.replies.bytes(), session.channels().slots.bytes());
            Reverse((all, bytes, session.id))
        });
        for session in sessions {
            if wanted == 0 {
                return;
            }
            wanted = wanted.saturating_sub(self.recall_slots_of(now, &session));
        }
    }

    /// Drops the sessions of clients with an expired lease, the longest silent first, since these
    /// would never free a slot. The clients keep their other state, and create new sessions when
    /// they return.
    fn drop_forsaken_sessions(&self, now: Duration) {
        let mut clients = self.clients.all();
        clients.retain(|client| self.has_expired(now, client));
        clients.sort_by_cached_key(|client| client.renewed());
        for client in clients {
            if self.reply_cache.wanted_bytes() == 0 {
                return;
            }
            let sessions = std::mem::take(&mut client.state().sessions);
            sessions.iter().for_each(|session| self.drop_session(session));
        }
    }

    fn recall_slots_of(&self, now: Duration, session: &Session) -> usize {
        let mut channels = session.channels();
        let ((lowered, bytes), target) = (channels.slots.lower(now), channels.slots.target());
        drop(channels);
        if lowered {
            self.counters.slot_recalls.add(1);
        }
        if lowered && session.is_reachable() {
            let (client, session) = (Arc::clone(&session.client), session.id);
            self.effect_queue.push(Effect::RecallSlot { client, session, target });
        }
        bytes
    }

    /// Notes that a client has answered CB_RECALL_SLOT. The slots above the target are freed at its
    /// next request, if none of them is in use then.
    pub fn slots_recalled(&self, session: &SessionId, target: u32) {
        if let Some(session) = self.session(session) {
            session.channels().slots.acknowledge(target);
        }
    }
}
