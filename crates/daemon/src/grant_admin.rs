//! Requests of the administrator about keys and grants.

use anyhow::{Context, Result, anyhow, bail};
use comity_export::Plan;
use comity_grants::{Binding, ListedCredential, Operation, Revocation, Revoked, Revoker};
use comity_server::control::Request;
use serde_json::{Value, json};

use crate::check_state::ending;
use crate::grant_service::GrantService;

/// Performs a request about keys and grants.
///
/// # Errors
/// A key or digest is malformed, or does not exist.
pub(crate) fn perform(service: &GrantService, request: &Request) -> Result<Value> {
    match request {
        Request::BindAccount { user, key } => {
            let (user, key) = (user.clone(), key.parse()?);
            service.add(Binding { user, key, comment: String::new() })?;
            Ok(Value::Null)
        }
        Request::UnbindAccount { key } => {
            service.remove(&key.parse()?)?;
            Ok(Value::Null)
        }
        Request::Accounts => Ok(service.bindings()?.iter().map(binding).collect()),
        Request::RevokeGrant { what } => revoke(service, what),
        Request::HeldGrants { key } => held(service, key.as_deref()),
        Request::EndingGrants => Ok(ending(&service.grants()).into()),
        _ => bail!("the request is not about keys"),
    }
}

/// Reports the rights of a key to an object, with their reasons.
///
/// # Errors
/// The key or operation is malformed, or the object is not in an export for keys.
pub(crate) fn why(plan: &Plan, request: &Request) -> Result<Value> {
    let Request::Why { path, operation, key, from } = request else {
        bail!("the request is not about the rights of a key");
    };
    let named = Operation::ALL.into_iter().find(|one| one.name() == operation);
    if named.is_none() && !operation.is_empty() {
        bail!("the operations are {}", Operation::ALL.map(Operation::name).join(", "));
    }
    let told = plan.why(path, (&key.parse()?, *from), named);
    let shown = path.display();
    let failed = || format!("{shown} cannot be reached in an export with sec=key");
    Ok(told.with_context(failed).map_err(|error| anyhow!("{error:#}"))?.into())
}

fn binding(binding: &Binding) -> Value {
    let Binding { user, key, comment } = binding;
    json!({ "user": user, "key": key.to_string(), "comment": comment })
}

/// Returns whether a text is the digest of a credential.
pub(crate) fn is_digest(what: &str) -> bool {
    matches!(revocation(what), Revocation::Credential(_))
}

fn revocation(what: &str) -> Revocation {
    if let Ok(digest) = what.parse() {
        Revocation::Credential(digest)
    } else if let Ok(key) = what.parse() {
        Revocation::Key(key)
    } else {
        Revocation::Text(what.to_owned())
    }
}

fn revoke(service: &GrantService, what: &str) -> Result<Value> {
    let revoked = service.grants().revoke(Revoker::Administrator, &revocation(what))?;
    let named = |one: &Revoked| match one {
        Revoked::Credential(digest) => digest.to_string(),
        Revoked::Key { key, .. } => key.to_string(),
    };
    Ok(revoked.iter().map(named).collect())
}

fn held(service: &GrantService, key: Option<&str>) -> Result<Value> {
    let grants = service.grants();
    let keys = match key {
        Some(key) => vec![key.parse()?],
        None => grants.holders(),
    };
    let held = keys.iter().flat_map(|key| grants.held_by(key));
    let shown = |one: ListedCredential| {
        json!({
            "digest": one.digest.to_string(),
            "holder": one.holder.to_string(),
            "text": one.text,
            "revoked": one.revoked,
        })
    };
    Ok(held.map(shown).collect())
}
