use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use comity_credential::{AuthStat, Credential, OpaqueAuth};
use comity_idmap::Caller;
use comity_vfs::{Result, Status};

use crate::plan::Entry;
use crate::{ClientCounters, Export, ExportId, Plan, Refusal, RpcPeer, Rules};

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

/// Under which rules and ids a visitor meets an export.
pub(crate) fn admit(
    plan: &Plan,
    visitor: &RpcPeer,
    credential: &OpaqueAuth<'_>,
    id: ExportId,
) -> std::result::Result<Arc<ResolvedCaller>, Refusal> {
    if let Some(resolved) = visitor.resolved(plan.generation(), id, credential) {
        return Ok(resolved);
    }
    let export = plan.export(id).ok_or(Status::Stale)?;
    let peer = visitor.peer();
    let entry = export.decide(peer.ip()).inspect_err(|why| {
        if *why == Status::Acces {
            export.strangers().refuse();
        }
    })?;
    let resolved =
        met(export, &entry, peer, credential).inspect_err(|_| entry.counters.refuse())?;
    let resolved = Arc::new(resolved);
    visitor.keep(plan.generation(), credential, &resolved);
    Ok(resolved)
}

fn met(
    export: &Arc<Export>,
    entry: &Entry<'_>,
    peer: SocketAddr,
    credential: &OpaqueAuth<'_>,
) -> std::result::Result<ResolvedCaller, Refusal> {
    if !entry.rules.take_port(peer.port()) {
        return Err(Status::Perm.into());
    }
    let claimed = Credential::parse(credential).map_err(Refusal::Denied)?;
    ResolvedCaller::of(export, entry.rules, peer.ip(), &claimed, entry.counters)
}

/// The innermost export that a path is in and this visitor may use, and the rest of the path below
/// it. Whether there are others is not told.
pub(crate) fn locate<'p>(
    plan: &'p Plan,
    visitor: &RpcPeer,
    path: &'p Path,
) -> Result<(&'p Export, &'p Path)> {
    let within = |export: &'p Arc<Export>| {
        path.strip_prefix(export.path()).ok().map(|below| (&**export, below))
    };
    let mut found: Vec<_> = plan.exports().iter().filter_map(within).collect();
    found.sort_by_key(|(export, _)| Reverse(export.path().components().count()));
    let mut closed = None;
    for (export, below) in found {
        match export.judge(visitor.peer().ip()) {
            Ok(_) if export.is_mounted() => return Ok((export, below)),
            Err(Status::Acces) => closed = closed.or(Some(export)),
            Ok(_) => return Err(Status::Acces),
            Err(status) => return Err(status),
        }
    }
    if let Some(export) = closed {
        export.strangers().refuse();
    }
    Err(Status::Acces)
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
