//! Finds what expires soon in a state folder, for `comity check`.

use std::path::Path;
use std::time::SystemTime;

use comity_export::{Diagnostic, Location, Severity};
use comity_grants::{Grants, Medium, MediumError, Moment, Record, Recovered};
use comity_server::control::{self, Answer, Request};
use comity_store::GrantFile;
use comity_vfs::AsServer;

use crate::grant_service::GRANTS;
use crate::state_folder::{TLS_CERTIFICATE, TLS_KEY, control_socket};
use crate::tls::{EXPIRES_SOON_DAYS, check_tls};

/// Most credentials that are reported, in order of expiry.
const NAMED_MAX: usize = 100;

const DAY_MILLISECONDS: u64 = 86_400_000;

/// Reports what expires within 30 days in a state folder: the certificate that the server made, if
/// the server uses it (`has_own`), and the credentials that keys hold. If the server runs, it is
/// asked for them; otherwise its file is read.
#[must_use]
pub fn check_state(folder: &Path, has_own: bool) -> Vec<Diagnostic> {
    let [certificate, key] = [TLS_CERTIFICATE, TLS_KEY].map(|name| folder.join(name));
    let files = (has_own && is_there(&certificate)).then_some((&*certificate, &*key));
    let mut found = check_tls(files, &[]);
    let file = folder.join(GRANTS);
    let texts = asked(folder).unwrap_or_else(|| read(&file));
    let place = Location::file(&file.display().to_string());
    let severity = Severity::Warning;
    found.extend(texts.into_iter().map(|text| Diagnostic { place: place.clone(), severity, text }));
    found
}

/// Describes each credential that expires within 30 days.
pub(crate) fn ending(grants: &Grants) -> Vec<String> {
    let now = grants.now();
    let soon = now.after_milliseconds(EXPIRES_SOON_DAYS as u64 * DAY_MILLISECONDS);
    let line = |(until, signer, one): (Moment, _, comity_grants::ListedCredential)| {
        let days = until.0.saturating_sub(now.0) / DAY_MILLISECONDS;
        let (digest, holder) = (one.digest, one.holder);
        format!(
            "the credential {digest} of key {holder} expires in {days} days, at {until}: the owner \
             of key {signer} may grant anew"
        )
    };
    let mut lines: Vec<_> = grants
        .ending(soon, NAMED_MAX + 1)
        .into_iter()
        .filter(|one| !one.2.revoked)
        .map(line)
        .collect();
    if lines.len() > NAMED_MAX {
        lines.truncate(NAMED_MAX);
        lines.push("more credentials expire within 30 days: `comity grants` shows them".to_owned());
    }
    lines
}

/// Asks the server that uses the folder; `None` if none runs.
fn asked(folder: &Path) -> Option<Vec<String>> {
    let socket = control_socket(folder).ok()?;
    let Ok(Answer::Done(lines)) = control::ask(&socket, &Request::EndingGrants) else {
        return None;
    };
    serde_json::from_value(lines).ok()
}

/// Reads the file of a server that is not running.
fn read(file: &Path) -> Vec<String> {
    if !is_there(file) {
        return Vec::new();
    }
    let recovered = match look(file) {
        Ok(recovered) => recovered,
        Err(error) => return vec![format!("what expires in it is not known: {error}")],
    };
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let now = Moment(since.as_millis() as u64).max(recovered.seen);
    ending(&Grants::new(Box::new(move || now), Box::new(ReadOnlyMedium), recovered))
}

fn is_there(file: &Path) -> bool {
    AsServer::here().is_ok_and(|_| file.exists())
}

fn look(file: &Path) -> Result<Recovered, MediumError> {
    GrantFile::look(&AsServer::here()?, file)
}

/// A medium for grants that are only read.
struct ReadOnlyMedium;

impl Medium for ReadOnlyMedium {
    fn store(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        Err("these grants are read-only".into())
    }

    fn replace(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        Err("these grants are read-only".into())
    }
}
