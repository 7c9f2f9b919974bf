//! The gate of the server: only peers to which some export is offered may call more than NULL.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Instant;

use comity_credential::{Admission, AuthStat, ChannelKind, Gate, GateRefusal};
use comity_vfs::{Result, Status};

use crate::export::Entry;
use crate::limits::REFUSAL;
use crate::{Candidate, Exports, Plan, RpcPeer};

/// Most kinds of channels that a line of the log names.
const REASONS_MAX: usize = 4;

impl Gate<RpcPeer> for Exports {
    /// Admits a peer that meets the rules of some export: a matching client by address or name, and
    /// the port. The decision is cached for the peer until the plan changes.
    #[inline]
    fn admits(&self, visitor: &RpcPeer) -> Admission {
        if visitor.is_admitted(self.generation()) {
            return Admission::Admitted;
        }
        self.judge(visitor, Some(visitor.channel().kind()))
    }

    #[inline]
    fn proof_of(&self, visitor: &RpcPeer) -> u64 {
        visitor.channel().number()
    }

    /// Explains why a peer to which some export is offered is refused: because of its port, or its
    /// channel.
    fn refusal_reason(&self, visitor: &RpcPeer, refusal: GateRefusal) -> String {
        if refusal.why != AuthStat::TooWeak {
            return "no export is offered to it".to_owned();
        }
        let (plan, channel) = (self.current(), visitor.channel().kind());
        let port = Some(visitor.peer().port());
        let is_let_in =
            |port, channel| plan.admission(visitor.into(), port, channel) == Admission::Admitted;
        if is_let_in(None, Some(channel)) {
            return "the exports offered to it take calls from ports below 1024 only".to_owned();
        }
        let (name, taken) = (channel.name(), plan.channels_for(visitor.into()));
        let wrong_channel =
            format!("it calls by xprtsec={name}, and the exports offered to it take {taken} only");
        match is_let_in(port, None) {
            true => format!("{wrong_channel}: mount with that option"),
            false => format!("{wrong_channel}, from ports below 1024"),
        }
    }

    /// A peer may begin TLS on a fresh connection. A peer whose address matches no client may do so
    /// only if some client or peer is identified by a proof, or if the server is a data server:
    /// otherwise a handshake would be useless.
    fn starts_tls(&self, visitor: &RpcPeer) -> bool {
        let plan = self.current();
        let address = Candidate::from(visitor.peer().ip());
        let is_known = || plan.admission(address, None, None) == Admission::Admitted;
        let asks = plan.asks_for_proofs() || plan.stores_data() || self.has_peer_servers();
        visitor.may_start_tls() && (asks || is_known())
    }
}

impl Gate<IpAddr> for Exports {
    /// Admits a peer to which some export is offered, from any port: clients ask a portmapper from
    /// any port. If the name of the peer matters, it is looked up meanwhile. Refusals are not
    /// counted.
    fn admits(&self, peer: &IpAddr) -> Admission {
        self.current().admission((*peer).into(), None, None)
    }
}

impl Exports {
    /// Admits a peer to COMPOUND of NFSv4. A data server admits every peer to it, and only to it: a
    /// client of the metadata server is known by the handle of its layout, whatever its address is.
    #[inline]
    pub fn admits_compound(&self, visitor: &RpcPeer) -> Admission {
        if visitor.is_admitted(self.generation()) || self.current().stores_data() {
            return Admission::Admitted;
        }
        self.judge(visitor, Some(visitor.channel().kind()))
    }

    /// Admits a server of the configuration, or a head of the same cluster, that has proved its key
    /// to the program by which exports are moved.
    pub fn admits_peer_server(&self, visitor: &RpcPeer) -> Admission {
        match self.peer_server(visitor) {
            Some(_) => Admission::Admitted,
            None => self.counted(Admission::Refused(AuthStat::TooWeak)),
        }
    }

    /// Explains why [`Self::admits_peer_server`] refuses a peer.
    #[must_use]
    pub fn peer_refusal_reason(&self, visitor: &RpcPeer) -> String {
        let (unknown, admitted) = match self.heads().load().is_some() {
            true => ("no head of the cluster", "another head of the cluster"),
            false => ("no [[peer]]", "a [[peer]] of the configuration"),
        };
        let proved = match visitor.key() {
            Some(key) => format!("it has proved the key {key}, which {unknown} has"),
            None => "it has proved no key by TLS".to_owned(),
        };
        format!("{proved}, and only {admitted} may hand exports over")
    }

    /// Admits a peer to a program that it needs before TLS: its channel does not count.
    pub fn admits_in_clear(&self, visitor: &RpcPeer) -> Admission {
        if visitor.is_admitted(self.generation()) {
            return Admission::Admitted;
        }
        self.judge(visitor, None)
    }

    /// Decides about a peer, and caches the decision in it, unless its channel did not count.
    #[cold]
    #[inline(never)]
    fn judge(&self, visitor: &RpcPeer, channel: Option<ChannelKind>) -> Admission {
        let plan = self.current();
        let port = Some(visitor.peer().port());
        if channel.is_none() {
            return self.counted(plan.admission(visitor.into(), port, None));
        }
        if let Some(why) = visitor.refusal(plan.generation()) {
            return self.counted(Admission::Refused(why));
        }
        let admission = plan.admission(visitor.into(), port, channel);
        match admission {
            Admission::Admitted => visitor.admit(plan.generation()),
            // The peer's name may be known later.
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
    /// Decides about a peer by the rules of all exports. Without a port or a channel, any port or
    /// channel is allowed.
    pub(crate) fn admission(
        &self,
        peer: Candidate<'_>,
        port: Option<u16>,
        channel: Option<ChannelKind>,
    ) -> Admission {
        let mut most_open = Admission::Refused(AuthStat::BadCred);
        for export in self.exports() {
            let verdict = verdict(&export.decide(peer), port, channel);
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

impl Plan {
    /// Returns the channels of the exports that are offered to a peer, as the value of `xprtsec=`.
    fn channels_for(&self, peer: Candidate<'_>) -> String {
        let entries = self.exports().iter().filter_map(|export| export.decide(peer).ok());
        let channels = entries.map(|entry| format!("xprtsec={}", entry.rules.channels));
        let channels: BTreeSet<_> = channels.collect();
        channels.into_iter().take(REASONS_MAX).collect::<Vec<_>>().join(" or ")
    }
}

/// Decides for one export. A Linux client reports AUTH_BADCRED and AUTH_TOOWEAK as EACCES.
fn verdict(
    entry: &Result<Entry<'_>>,
    port: Option<u16>,
    channel: Option<ChannelKind>,
) -> Admission {
    match entry {
        Ok(entry) => {
            let port = port.is_none_or(|port| entry.takes_port(port));
            let channel = channel.is_none_or(|channel| entry.rules.channels.take(channel));
            let takes = port && channel;
            if takes { Admission::Admitted } else { Admission::Refused(AuthStat::TooWeak) }
        }
        Err(Status::Delay) => Admission::Undecided,
        Err(_) => Admission::Refused(AuthStat::BadCred),
    }
}

/// Returns a rank: of the decisions of several exports, the one with the highest rank counts.
fn openness(admission: &Admission) -> u8 {
    match admission {
        Admission::Admitted => 3,
        Admission::Undecided => 2,
        Admission::Refused(AuthStat::TooWeak) => 1,
        Admission::Refused(_) => 0,
    }
}
