use std::net::IpAddr;
use std::sync::Arc;

use comity_credential::{AuthStat, Credential};
use comity_idmap::Caller;
use comity_vfs::Status;

use crate::{ClientCounters, Export, Refusal, Rules};

/// What a caller was found to be at an export: kept by its [`RpcPeer`].
pub(crate) struct ResolvedCaller {
    export: Arc<Export>,
    rules: Arc<Rules>,
    client: IpAddr,
    caller: Caller,
    counters: Arc<ClientCounters>,
    fsid: u64,
    rooms: Rooms,
}

/// Whether this build has range maps and cloaks. One without them is there to measure what they
/// cost where nobody uses them: each call asks here first, and that is all that asks.
pub const ROOMS: bool = cfg!(feature = "rooms");

/// Which rooms a caller's calls go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rooms {
    /// There may be objects that the caller may not know of.
    cloaked: bool,
    /// Directories look changed in every reply.
    restless: bool,
    /// Attributes are shown as they are on disk.
    plain: bool,
}

impl Rooms {
    /// Those that the rules lead through; none, if one is needed that this build does not have.
    /// Nothing is hidden from the server's root.
    fn of(rules: &Rules, caller: &Caller, present: bool) -> Option<Self> {
        let mapped = !rules.ids.users.is_empty() || !rules.ids.groups.is_empty();
        let (cloaked, restless) = (!rules.cloak.is_empty(), rules.no_client_cache);
        let needed = mapped || cloaked || restless;
        let cloaked = cloaked && !caller.disk().is_root();
        let plain = !mapped && !restless;
        (present || !needed).then_some(Self { cloaked, restless, plain })
    }
}

impl ResolvedCaller {
    /// What somebody at `client` is who claims to be `claimed`, under these rules; what becomes of
    /// its calls is counted in `tally`.
    pub(crate) fn of(
        export: &Arc<Export>,
        rules: &Arc<Rules>,
        client: IpAddr,
        claimed: &Credential,
        counters: &Arc<ClientCounters>,
    ) -> std::result::Result<Self, Refusal> {
        if !rules.flavors.contains(&claimed.flavor()) {
            return Err(Refusal::Denied(AuthStat::TooWeak));
        }
        let caller = match claimed {
            Credential::None => rules.ids.nobody(),
            Credential::Sys(cred) => rules.ids.admit(cred).map_err(|_| Status::Acces)?,
        };
        let rooms = Rooms::of(rules, &caller, ROOMS).ok_or(Status::ServerFault)?;
        let id = u64::from(export.id().0);
        let fsid = export.fsid() ^ (id << 32 | id);
        let (export, rules) = (Arc::clone(export), Arc::clone(rules));
        Ok(Self { export, rules, client, caller, counters: Arc::clone(counters), fsid, rooms })
    }

    pub(crate) const fn export(&self) -> &Arc<Export> {
        &self.export
    }

    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Where the caller's calls come from.
    pub(crate) const fn client(&self) -> IpAddr {
        self.client
    }

    /// What turns the numbers of file systems into those the caller sees.
    pub(crate) const fn fsid(&self) -> u64 {
        self.fsid
    }

    /// Whether attributes are shown as they are on disk.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        !ROOMS || self.rooms.plain
    }

    /// Whether there may be objects that the caller may not know of.
    #[inline]
    pub(crate) const fn is_cloaked(&self) -> bool {
        ROOMS && self.rooms.cloaked
    }

    /// Whether directories look changed in every reply.
    #[inline]
    pub(crate) const fn is_restless(&self) -> bool {
        ROOMS && self.rooms.restless
    }

    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn counters(&self) -> &ClientCounters {
        &self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cloak;
    use comity_cloak::{Entry, Owned};
    use comity_idmap::{IdMapBuilder, Ids, Range, Rule};

    #[test]
    fn without_rooms_nobody_meets_rules_that_need_one() {
        let plain = Rules::default();
        let caller = plain.ids.nobody();
        assert!(Rooms::of(&plain, &caller, false).is_some());
        let (wire, disk) = (Range::single(5), Range::single(6));
        let mut map = IdMapBuilder::default();
        map.add(Rule { wire, disk }).unwrap();
        let map = map.build();
        let users = Ids { users: map.clone(), ..Ids::default() };
        let groups = Ids { groups: map, ..Ids::default() };
        let mask = "+000".parse().unwrap();
        let entry = Entry { owned: Owned::ByGroup, ids: disk, mask };
        for rules in [
            Rules { ids: users, ..plain.clone() },
            Rules { ids: groups, ..plain.clone() },
            Rules { cloak: Cloak::new(&[entry]).0, ..plain.clone() },
            Rules { no_client_cache: true, ..plain },
        ] {
            assert_eq!(Rooms::of(&rules, &caller, false), None);
            assert!(Rooms::of(&rules, &caller, true).is_some());
        }
    }
}
