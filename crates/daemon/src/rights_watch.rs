//! Ends opens, locks and delegations whose rights have ended.

use std::sync::Arc;
use std::time::Duration;

use comity_export::{Exports, Plan};
use comity_grants::KnownState;
use comity_nfs4::{Callbacks, Memory};
use comity_state::{Client, FileKey, GrantedAccess, Grantee};
use comity_vfs::Access;

use crate::grant_service::GrantService;
use crate::limits::RIGHTS_ROUND;

/// Releases the state that clients hold by grants that have ended.
pub(crate) struct RightsWatch {
    memory: Memory,
    callbacks: Arc<Callbacks>,
    exports: Arc<Exports>,
    service: Arc<GrantService>,
    /// The version of the grants and the generation of the plan at the last round.
    seen: (KnownState, u64),
    /// Time of the next round, if no change is noticed before.
    next_round: Duration,
}

impl RightsWatch {
    pub(crate) fn new(
        (memory, callbacks): (&Memory, &Arc<Callbacks>),
        exports: &Arc<Exports>,
        service: &Arc<GrantService>,
    ) -> Self {
        let (memory, callbacks) = (memory.clone(), Arc::clone(callbacks));
        let (exports, service) = (Arc::clone(exports), Arc::clone(service));
        let (seen, next_round) = Default::default();
        Self { memory, callbacks, exports, service, seen, next_round }
    }

    /// Forgets expired credentials, and checks the clients' state if a right may have ended. Must
    /// be called each second.
    pub(crate) fn pass(&mut self) {
        self.service.pass();
        let (now, plan) = (self.memory.clock.now(), Arc::clone(&self.exports.current()));
        let known = (self.service.grants().version(), plan.generation());
        let has_changed = known != self.seen;
        if !has_changed && now < self.next_round {
            return;
        }
        // After a change the next round follows at once, because an OPEN that was allowed before
        // the change may be recorded after this round.
        self.next_round = if has_changed { now } else { now.saturating_add(RIGHTS_ROUND) };
        self.seen = known;
        let clients = self.memory.engine.grantee_clients();
        let ended: usize = clients.iter().map(|client| self.look_at(now, &plan, client)).sum();
        if ended > 0 {
            tracing::info!(states = ended, "opens, locks and delegations ended with their rights");
            self.callbacks.pump(now);
            // A failure to store is logged.
            let _ = self.memory.engine.is_settled(self.memory.settle.as_deref());
        }
    }

    /// Releases a client's state that its grants no longer allow; returns the number of released
    /// states.
    fn look_at(&self, now: Duration, plan: &Plan, client: &Arc<Client>) -> usize {
        let engine = &self.memory.engine;
        let held = engine.granted_files(client);
        let of_file = |(file, grantee): (FileKey, Arc<Grantee>)| {
            // After an error the next round tries again; calls are refused meanwhile.
            let allowed = plan.granted_access(&file, &grantee).ok()?;
            Some(engine.end_rights(now, client, (&file, &grantee), granted(allowed)))
        };
        held.filter_map(of_file).sum()
    }
}

fn granted(allowed: Access) -> GrantedAccess {
    GrantedAccess {
        read: allowed.contains(Access::READ),
        execute: allowed.contains(Access::EXECUTE),
        write: allowed.contains(Access::MODIFY),
    }
}
