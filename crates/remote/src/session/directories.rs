//! Delegations of directories (RFC 8881, 10.9 and 18.39), which the client requests by
//! GET_DIR_DELEGATION.

use std::time::Duration;

use comity_proto::nfs4::{GetDirDelegation4res, operation as op};
use comity_vfs::DelegationNumber;

use super::file_states::HeldDelegation;
use super::job::{DirectoryTask, Job};
use super::machine::ClientMachine;
use super::request::SessionAnswer;
use crate::compound::{CompoundReply, OpFailure};
use crate::limits::DELEGATIONS_MAX;
use crate::server_handle::ServerHandle;

impl ClientMachine {
    /// The delegation of a directory, if it may be used now.
    pub(crate) fn directory_grant(
        &self,
        now: Duration,
        directory: &ServerHandle,
    ) -> Option<DelegationNumber> {
        let held = self.states.delegation(directory).filter(|held| held.is_good())?;
        held.grant.filter(|_| self.is_lease_certain(now))
    }

    /// Returns whether a directory has a delegation in any state or a request for one. Only one
    /// request is sent at a time: with two, the order of grants and returns would be unknown.
    pub(super) fn has_directory(&self, directory: &ServerHandle) -> bool {
        let asks = |job: &Job| matches!(job, Job::Delegate(task) if task.directory == *directory);
        self.states.delegation(directory).is_some()
            || self.requests.values().any(|pending| asks(&pending.job))
    }

    /// Handles the reply to GET_DIR_DELEGATION. The request's number becomes that of the grant.
    pub(super) fn directory_ended(
        &mut self,
        now: Duration,
        (id, task): (u64, &DirectoryTask),
        reply: CompoundReply,
    ) {
        let grant = match read_grant(&reply) {
            Ok(GetDirDelegation4res::Ok(granted)) => {
                let (owner, grant) = (task.owner.clone(), DelegationNumber(id));
                let held = HeldDelegation::of_directory(granted.stateid, owner, grant);
                self.states.hold_delegation(task.directory, held);
                Some(grant)
            }
            Ok(GetDirDelegation4res::Unavail { .. }) | Err(_) => None,
        };
        self.answer(id, Ok(SessionAnswer::Delegated(reply, grant)));
        if self.states.delegations > DELEGATIONS_MAX {
            self.keep_few(now, DELEGATIONS_MAX);
        }
    }
}

fn read_grant(reply: &CompoundReply) -> Result<GetDirDelegation4res, OpFailure> {
    let mut results = reply.results();
    results.status(op::PUTFH)?;
    results.next(op::GET_DIR_DELEGATION)
}
