//! Under which rules and ids a call meets an export, and which export a path leads to.

use std::cmp::Reverse;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use comity_credential::CredentialRef;
use comity_vfs::{Result, Status};

use crate::export::Entry;
use crate::resolved_caller::ResolvedCaller;
use crate::{Export, ExportId, Plan, Refusal, RpcPeer};

/// Resolves a credential to the rules and ids that hold for it at an export.
pub(crate) fn admit(
    plan: &Plan,
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
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
    let met = met(export, &entry, peer, credential);
    let resolved = Arc::new(met.inspect_err(|_| entry.counters.refuse())?);
    visitor.keep(plan.generation(), credential, &resolved);
    Ok(resolved)
}

fn met(
    export: &Arc<Export>,
    entry: &Entry<'_>,
    peer: SocketAddr,
    credential: &CredentialRef<'_>,
) -> std::result::Result<ResolvedCaller, Refusal> {
    if !entry.rules.take_port(peer.port()) {
        return Err(Status::Perm.into());
    }
    let claimed = credential.credential().map_err(Refusal::Denied)?;
    ResolvedCaller::of(export, entry.rules, peer.ip(), &claimed, entry.counters)
}

/// The innermost export that a path is in and this peer may use, and the rest of the path below it.
/// The answer does not show if there are others.
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
