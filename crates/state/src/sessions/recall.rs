//! Slots are asked back where the memory for replies becomes short (RFC 8881, 20.8).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use crate::{Effect, Engine, Session, SessionId};

impl Engine {
    /// Lowers the targets of the largest sessions of those clients that have most, until what they
    /// are expected to give back is enough. The clients are told by CB_RECALL_SLOT and with their
    /// next SEQUENCE; the slots go when a client has followed, never before.
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

    /// Drops the sessions of clients with an expired lease, the longest silent first: they would
    /// never give a slot back. They keep their other state, and make new sessions when they come
    /// back.
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

    /// A client has answered CB_RECALL_SLOT: it knows the target. The slots above it go with its
    /// next request that has none of them under way.
    pub fn slots_recalled(&self, session: &SessionId, target: u32) {
        if let Some(session) = self.session(session) {
            session.channels().slots.acknowledge(target);
        }
    }
}
