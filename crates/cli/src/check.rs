//! Reports the errors of a configuration: `comity check`, and the reason why a server does not
//! start.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use comity_daemon::{
    Configuration, GivenExport, check_state, check_tls, diagnostic_json, server_settings,
};
use comity_export::{Diagnostic, Plan, ServerSettings, Severity, Source};
use serde_json::{Value, json};

use crate::settings::{TYPED, state_folder};
use crate::stdout::say;

/// Reports all findings about a configuration, and what expires soon in the state folder; fails if
/// a server would refuse the configuration.
///
/// # Errors
/// None of its own: the report and the exit code show the errors.
pub(crate) fn check(
    (sources, given): (Vec<Source>, Option<GivenExport>),
    typed: Option<(PathBuf, PathBuf)>,
    state: Option<PathBuf>,
    json: bool,
) -> Result<ExitCode> {
    let mut found = Vec::new();
    let written = server_settings(&sources).unwrap_or_default();
    let exports = match Configuration::to_look_at(sources).given(given).load(None) {
        Ok((plan, doubts)) => {
            found.extend(doubts);
            let is_named = typed.is_some() || written.tls_cert.is_some();
            found.extend(certificates(&written, typed, &plan));
            let is_root = rustix::process::geteuid().is_root();
            if let Ok(folder) = state_folder(state.or_else(|| written.state_dir.clone()), is_root) {
                found.extend(check_state(&folder, !is_named));
            }
            Some(plan.exports().len())
        }
        Err(wrong) => {
            found.extend(wrong);
            None
        }
    };
    let errors = found.iter().filter(|finding| finding.severity == Severity::Error).count();
    if json {
        let list: Vec<Value> = found.iter().map(diagnostic_json).collect();
        say(json!({ "ok": errors == 0, "exports": exports, "findings": list }));
    } else {
        found.iter().for_each(say);
        say(summary(exports, errors, found.len() - errors));
    }
    Ok(if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The findings about the server's certificate and the authorities of clients.
fn certificates(
    written: &ServerSettings,
    typed: Option<(PathBuf, PathBuf)>,
    plan: &Plan,
) -> Vec<Diagnostic> {
    let own = typed.or_else(|| written.tls_cert.clone().zip(written.tls_key.clone()));
    let own = own.as_ref().map(|(certificate, key)| (certificate.as_path(), key.as_path()));
    let mut authorities = plan.authority_files();
    authorities.extend(written.tls_client_ca.iter().map(PathBuf::as_path));
    check_tls(own, &authorities.into_iter().collect::<Vec<_>>())
}

/// Prints why a server does not start.
pub(crate) fn refused(found: &[Diagnostic]) -> ExitCode {
    let (typed, written): (Vec<_>, Vec<_>) =
        found.iter().partition(|finding| &*finding.place.file == TYPED);
    typed.iter().for_each(|finding| eprintln!("comity: {}", finding.text));
    written.iter().for_each(|finding| eprintln!("{finding}"));
    if !written.is_empty() {
        eprintln!(
            "comity: this configuration has errors, so the server does not start; correct it, then \
             run comity check"
        );
    }
    ExitCode::FAILURE
}

fn summary(exports: Option<usize>, errors: usize, warnings: usize) -> String {
    let plural = |count: usize, noun: &str| match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    };
    let (errors, warnings) = (plural(errors, "error"), plural(warnings, "warning"));
    match exports {
        Some(exports) => format!("{}, {errors}, {warnings}", plural(exports, "export")),
        None => format!("{errors}, {warnings}"),
    }
}
