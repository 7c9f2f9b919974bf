//! `comity grant`: signs a grant.

use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Result;
use comity_grants::Moment;
use comity_keynote::Grant;

use super::id::named;
use super::key_choice::public_key;
use crate::stdout::show;

/// Prints a signed grant. The server is asked only for the id of the object.
///
/// # Errors
/// If the object or a key cannot be read, or the grant cannot be written.
pub(crate) fn print(typed: &crate::key_arguments::Grant) -> Result<ExitCode> {
    let signer = typed.key.signer()?;
    let end = typed.expires.map(|expiry| expiry.moment(now()));
    let grant = Grant {
        authorizer: *signer.public_key(),
        licensee: public_key(&typed.to)?,
        export: typed.export.clone(),
        object: named(&typed.path)?.to_string(),
        rights: typed.rights,
        expires: end.map(|end| end.to_string()),
        is_final: typed.is_final,
        comment: typed.comment.clone(),
    };
    show(grant.sign(&*signer)?.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn now() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Moment::from_seconds(since.map_or(0, |since| since.as_secs()))
}
