//! Resolves the rules and ids for a call at an export, and the export of a path.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use comity_credential::{AuthStat, ChannelKind, Credential, CredentialRef};
use comity_vfs::{Result, Status};

use crate::export::Entry;
use crate::key_identity::KeyIdentity;
use crate::resolved_caller::{KEYS, ResolvedCaller};
use crate::rules_version::RulesVersion;
use crate::{Export, ExportId, Plan, Referred, Refusal, RpcPeer};

/// Resolves a credential to the rules and ids that hold for it at an export.
#[inline]
pub(crate) fn admit(
    plan: &Plan,
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
    id: ExportId,
) -> std::result::Result<Arc<ResolvedCaller>, Refusal> {
    let version = rules_version(plan, visitor);
    if let Some(resolved) = visitor.resolved(version, id, credential) {
        return Ok(resolved);
    }
    admit_anew((plan, visitor), credential, id, version)
}

#[cold]
fn admit_anew(
    (plan, visitor): (&Plan, &RpcPeer),
    credential: &CredentialRef<'_>,
    id: ExportId,
    version: RulesVersion,
) -> std::result::Result<Arc<ResolvedCaller>, Refusal> {
    let resolved = resolve((plan, visitor), credential, id, Some(visitor.channel().kind()))?;
    visitor.keep(version, credential, &resolved);
    Ok(resolved)
}

/// Resolves the caller of a MOUNT without a check of its channel, because Linux mounts NFSv3 in
/// clear and uses TLS for the rest. The result is not cached, since other calls must not use it.
pub(crate) fn admit_to_mount(
    plan: &Plan,
    visitor: &RpcPeer,
    credential: &CredentialRef<'_>,
    id: ExportId,
) -> std::result::Result<Arc<ResolvedCaller>, Refusal> {
    resolve((plan, visitor), credential, id, None)
}

#[inline]
fn rules_version(plan: &Plan, visitor: &RpcPeer) -> RulesVersion {
    let grants = plan.grants().filter(|_| KEYS && visitor.channel().identity().is_some());
    RulesVersion { plan: plan.generation(), grants: grants.map_or(0, |grants| grants.epoch()) }
}

fn resolve(
    (plan, visitor): (&Plan, &RpcPeer),
    credential: &CredentialRef<'_>,
    id: ExportId,
    channel: Option<ChannelKind>,
) -> std::result::Result<Arc<ResolvedCaller>, Refusal> {
    let export = plan.export(id).filter(|_| visitor.may_use(id)).ok_or(Status::Stale)?;
    let entry = export.decide(visitor).inspect_err(|why| {
        if *why == Status::Acces {
            export.strangers().refuse();
        }
    })?;
    let met = met((plan, export), &entry, visitor, (credential, channel));
    let met = met.inspect_err(|_| entry.counters.refuse())?;
    if export.settings().is_moving {
        return Err(Status::Delay.into());
    }
    match export.referral() {
        // The address is on its way to the server that it would be referred to by this address.
        Some(_) if is_at_address_of(visitor, export) => Err(Status::Delay.into()),
        // A caller of an absent file system is told where it is, and has no view of it.
        Some(_) => Err(Refusal::Referred(Referred::to(id))),
        None => Ok(Arc::new(met)),
    }
}

/// Returns whether a visitor has come by the address that goes with an export.
fn is_at_address_of(visitor: &RpcPeer, export: &Export) -> bool {
    export.settings().address.is_some_and(|address| visitor.local() == Some(address))
}

fn met(
    (plan, export): (&Plan, &Arc<Export>),
    entry: &Entry<'_>,
    visitor: &RpcPeer,
    (credential, channel): (&CredentialRef<'_>, Option<ChannelKind>),
) -> std::result::Result<ResolvedCaller, Refusal> {
    let peer = visitor.peer();
    if !entry.takes_port(peer.port()) {
        return Err(Status::Perm.into());
    }
    if channel.is_some_and(|channel| !entry.rules.channels.take(channel)) {
        return Err(Refusal::Denied(AuthStat::TooWeak));
    }
    let claimed = credential.credential().map_err(Refusal::Denied)?;
    // An authority has named the user: the credential does not count.
    let proved = visitor.channel().identity().and_then(|identity| identity.user.clone());
    let claimed = proved.map_or(claimed, Credential::Sys);
    let proved = (visitor.key(), peer.ip());
    let identity = KeyIdentity::of(plan.grants(), export, proved, entry.rules);
    if matches!(identity, KeyIdentity::Missing) && channel.is_some() {
        return Err(Refusal::Denied(AuthStat::TooWeak));
    }
    ResolvedCaller::of(export, entry.rules, (peer.ip(), &identity), &claimed, entry.counters)
}

/// Returns the innermost export that contains a path and that this peer may use, and the rest of
/// the path below it. The result does not reveal other exports.
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
        match export.judge(visitor) {
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
