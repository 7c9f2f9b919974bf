//! The gate of the server: only peers that some export is offered to may call more than NULL.

use std::net::IpAddr;
use std::time::Instant;

use comity_credential::{Admission, AuthStat, Gate};
use comity_vfs::{Result, Status};

use crate::export::Entry;
use crate::limits::REFUSAL;
use crate::{Exports, Plan, RpcPeer};

impl Gate<RpcPeer> for Exports {
    /// Admits a peer that meets the rules of some export: a client of its list that matches the
    /// address or name, and the port. The peer keeps the verdict until the plan changes.
    #[inline]
    fn admits(&self, visitor: &RpcPeer) -> Admission {
        if visitor.is_admitted(self.generation()) {
            return Admission::Admitted;
        }
        self.judge(visitor)
    }
}

impl Gate<IpAddr> for Exports {
    /// Admits a peer that some export is offered to, whatever its port is: clients ask a portmapper
    /// from any port. A name that this depends on is looked up meanwhile. Refusals are not counted.
    fn admits(&self, peer: &IpAddr) -> Admission {
        self.current().admission(*peer, None)
    }
}

impl Exports {
    #[cold]
    #[inline(never)]
    fn judge(&self, visitor: &RpcPeer) -> Admission {
        let plan = self.current();
        if let Some(why) = visitor.refusal(plan.generation()) {
            return self.counted(Admission::Refused(why));
        }
        let peer = visitor.peer();
        let admission = plan.admission(peer.ip(), Some(peer.port()));
        match admission {
            Admission::Admitted => visitor.admit(plan.generation()),
            // A name may be known later that was not known now.
            Admission::Refused(why) => {
                let until = plan.asks_for_names().then(|| Instant::now() + REFUSAL);
                visitor.refuse(plan.generation(), (why, until));
            }
            Admission::Undecided => {}
        }
        self.counted(admission)
    }

    fn counted(&self, admission: Admission) -> Admission {
        if matches!(admission, Admission::Refused(_)) {
            self.refuse();
        }
        admission
    }
}

impl Plan {
    /// Judges a peer by the rules of all exports; without a port only its address or name counts.
    pub(crate) fn admission(&self, peer: IpAddr, port: Option<u16>) -> Admission {
        let mut most_open = Admission::Refused(AuthStat::BadCred);
        for export in self.exports() {
            let verdict = verdict(&export.decide(peer), port);
            if openness(&verdict) > openness(&most_open) {
                most_open = verdict;
            }
            if most_open == Admission::Admitted {
                break;
            }
        }
        most_open
    }
}

/// The verdict of one export. A Linux client reports AUTH_BADCRED and AUTH_TOOWEAK as EACCES.
fn verdict(entry: &Result<Entry<'_>>, port: Option<u16>) -> Admission {
    match entry {
        Ok(entry) if port.is_none_or(|port| entry.rules.take_port(port)) => Admission::Admitted,
        Ok(_) => Admission::Refused(AuthStat::TooWeak),
        Err(Status::Delay) => Admission::Undecided,
        Err(_) => Admission::Refused(AuthStat::BadCred),
    }
}

/// Of the verdicts of several exports the most open one counts.
fn openness(admission: &Admission) -> u8 {
    match admission {
        Admission::Admitted => 3,
        Admission::Undecided => 2,
        Admission::Refused(AuthStat::TooWeak) => 1,
        Admission::Refused(_) => 0,
    }
}
