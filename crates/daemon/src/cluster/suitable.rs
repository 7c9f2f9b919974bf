//! The exports that a cluster can serve.

use std::path::Path;

use anyhow::{Result, bail};
use comity_export::{Export, Fsid, KeyUse, Plan};

/// Checks that each export can have a head of its own.
///
/// # Errors
/// The first export that cannot, and why.
pub(crate) fn check_all(plan: &Plan) -> Result<()> {
    for export in plan.exports() {
        if let Some(why) = unsuitable(plan, export) {
            bail!("{} cannot be served by a cluster: {why}", export.path().display());
        }
    }
    Ok(())
}

/// Returns the reason why an export cannot have a head of its own.
pub(super) fn unsuitable(plan: &Plan, export: &Export) -> Option<&'static str> {
    let (path, settings) = (export.path(), export.settings());
    let is_top = path == Path::new("/") || settings.fsid == Some(Fsid::Number(0));
    let is_inside = |other: &Export| other.path() != path && path.starts_with(other.path());
    let uses_keys = |key_use| key_use != KeyUse::AccountsOnly;
    if is_top {
        return Some("it is the top of what NFSv4 clients see (/ or fsid=0)");
    }
    if plan.exports().iter().any(|other| is_inside(other)) {
        return Some("it is inside another export, so that a file would have two heads");
    }
    if settings.crosses_mounts {
        return Some("it has the option crossmnt");
    }
    if plan.stores_data() || export.placement().is_some() {
        return Some("it has a [[placement]], or this server is a data server");
    }
    let mut rules = export.clients().iter().map(|(_, rules)| rules.key_use);
    if settings.policy.is_some() || rules.any(uses_keys) {
        return Some("it admits keys (sec=key), and credentials are known to one head only");
    }
    None
}
