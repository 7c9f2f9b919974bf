use std::net::IpAddr;
use std::sync::Arc;

use comity_credential::{AuthStat, Credential};
use comity_idmap::Caller;
use comity_vfs::Status;

use crate::{ClientCounters, Export, Refusal, Rules};

/// The rules and ids of a caller at an export, kept by its [`crate::RpcPeer`].
pub(crate) struct ResolvedCaller {
    export: Arc<Export>,
    rules: Arc<Rules>,
    client: IpAddr,
    caller: Caller,
    counters: Arc<ClientCounters>,
    fsid: u64,
    rooms: Rooms,
}

/// True if this build has range maps and cloaks. A build without them serves to measure their cost
/// where nobody uses them: each call asks here first, and nowhere else.
pub const ROOMS: bool = cfg!(feature = "rooms");

/// The features that a caller's calls need.
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
    /// Resolves a caller at `client` with the credential `claimed` under these rules. Its calls are
    /// counted in `counters`.
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

    /// The address that the caller's calls come from.
    pub(crate) const fn client(&self) -> IpAddr {
        self.client
    }

    /// The number that file system ids are combined with (exclusive or) for the caller.
    pub(crate) const fn fsid(&self) -> u64 {
        self.fsid
    }

    /// Returns whether attributes are shown as they are on disk.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        !ROOMS || self.rooms.plain
    }

    /// Returns whether there may be objects that the caller may not know of.
    #[inline]
    pub(crate) const fn is_cloaked(&self) -> bool {
        ROOMS && self.rooms.cloaked
    }

    /// Returns whether directories look changed in every reply.
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
