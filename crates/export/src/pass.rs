use std::cmp::Reverse;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use comity_credential::{AuthStat, Credential, OpaqueAuth};
use comity_idmap::Caller;
use comity_vfs::{Result, Status};

use crate::plan::Entry;
use crate::{Export, ExportId, Plan, Refusal, Rules, Tally, Visitor};

/// What a caller was found to be at an export: kept by its [`Visitor`].
pub(crate) struct Pass {
    export: Arc<Export>,
    rules: Arc<Rules>,
    client: IpAddr,
    caller: Caller,
    tally: Arc<Tally>,
    fsid: u64,
}

impl Pass {
    /// What somebody at `client` is who claims to be `claimed`, under these rules; what becomes of
    /// its calls is counted in `tally`.
    pub(crate) fn of(
        export: &Arc<Export>,
        rules: &Arc<Rules>,
        client: IpAddr,
        claimed: &Credential,
        tally: &Arc<Tally>,
    ) -> std::result::Result<Self, Refusal> {
        if !rules.flavors.contains(&claimed.flavor()) {
            return Err(Refusal::Denied(AuthStat::TooWeak));
        }
        let caller = match claimed {
            Credential::None => rules.ids.nobody(),
            Credential::Sys(cred) => rules.ids.admit(cred).map_err(|_| Status::Acces)?,
        };
        let id = u64::from(export.id().0);
        let fsid = export.fsid() ^ (id << 32 | id);
        let (export, rules) = (Arc::clone(export), Arc::clone(rules));
        Ok(Self { export, rules, client, caller, tally: Arc::clone(tally), fsid })
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

    pub(crate) const fn caller(&self) -> &Caller {
        &self.caller
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

/// Under which rules and ids a visitor meets an export.
pub(crate) fn admit(
    plan: &Plan,
    visitor: &Visitor,
    credential: &OpaqueAuth<'_>,
    id: ExportId,
) -> std::result::Result<Arc<Pass>, Refusal> {
    if let Some(pass) = visitor.pass(plan.generation(), id, credential) {
        return Ok(pass);
    }
    let export = plan.export(id).ok_or(Status::Stale)?;
    let peer = visitor.peer();
    let entry = export.decide(peer.ip()).inspect_err(|why| {
        if *why == Status::Acces {
            export.strangers().refuse();
        }
    })?;
    let pass = met(export, &entry, peer, credential).inspect_err(|_| entry.tally.refuse())?;
    let pass = Arc::new(pass);
    visitor.keep(plan.generation(), credential, &pass);
    Ok(pass)
}

fn met(
    export: &Arc<Export>,
    entry: &Entry<'_>,
    peer: SocketAddr,
    credential: &OpaqueAuth<'_>,
) -> std::result::Result<Pass, Refusal> {
    if entry.rules.secure && peer.port() >= 1024 {
        return Err(Status::Perm.into());
    }
    let claimed = Credential::parse(credential).map_err(Refusal::Denied)?;
    Pass::of(export, entry.rules, peer.ip(), &claimed, entry.tally)
}

/// The innermost export that a path is in and this visitor may use, and the rest of the path below
/// it. Whether there are others is not told.
pub(crate) fn locate<'p>(
    plan: &'p Plan,
    visitor: &Visitor,
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
