//! CB_RECALL_ANY: before the bound of delegations is reached, clients are asked to return those
//! that they need least (RFC 8881, 20.6).

use std::sync::Arc;
use std::time::Duration;

use crate::limits::RECALL_ANY_REST;
use crate::sync::atomic::Ordering;
use crate::{Client, ClientProtocol, Effect, Engine};

/// A number of delegations or states, and its bound.
#[derive(Clone, Copy)]
struct Fullness {
    len: usize,
    limit: usize,
}

impl Fullness {
    /// Returns whether seven eighths of the bound are used.
    const fn is_near(self) -> bool {
        self.len >= self.limit - self.limit / 8
    }

    /// Returns the number above three quarters of the bound. When that many are returned, there is
    /// room for a while.
    const fn excess(self) -> usize {
        self.len.saturating_sub(self.limit / 4 * 3)
    }
}

impl Engine {
    /// Asks clients to return delegations. All clients are asked in proportion to their delegations
    /// when the delegations of all come near their bound. One client is asked when it comes near
    /// its bound of states.
    pub(crate) fn recall_any(&self, now: Duration) {
        let len = self.files.delegations.load(Ordering::Acquire);
        if len == 0 {
            return;
        }
        let all = Fullness { len, limit: self.settings.limits.delegations };
        for client in self.clients.all() {
            // Minor version 0 has no CB_RECALL_ANY.
            if client.protocol == ClientProtocol::ExchangeId && client.has_callbacks() {
                self.recall_any_of(now, &client, all);
            }
        }
    }

    fn recall_any_of(&self, now: Duration, client: &Arc<Client>, all: Fullness) {
        let mut state = client.state();
        let held = state.holdings.counts().all_delegations();
        let own =
            Fullness { len: state.holdings.len(), limit: self.settings.limits.states_per_client };
        let share = if all.is_near() { (all.excess() * held).div_ceil(all.len) } else { 0 };
        let too_many = if own.is_near() { share.max(own.excess()) } else { share }.min(held);
        let rests = state.asked_any.is_some_and(|at| now < at.saturating_add(RECALL_ANY_REST));
        if too_many == 0 || rests || self.has_expired(now, client) {
            return;
        }
        state.asked_any = Some(now);
        let directories = state.holdings.counts().directories > 0;
        drop(state);
        self.counters.recalls_any.add(1);
        let (client, keep) = (Arc::clone(client), (held - too_many) as u32);
        self.effect_queue.push(Effect::RecallAny { client, keep, directories });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_excess_is_what_exceeds_three_quarters() {
        let of = |len| Fullness { len, limit: 64 };
        assert_eq!([55, 56, 64].map(|len| of(len).is_near()), [false, true, true]);
        assert_eq!([10, 48, 56, 64].map(|len| of(len).excess()), [0, 0, 8, 16]);
    }
}
