//! Runs a server from its arguments: `comity serve`.

use std::process::ExitCode;

use anyhow::Result;
use comity_daemon::{Ended, Options, server_settings};
use comity_server::inherited_listeners;

use crate::far_export::FarExport;
use crate::{arguments, check, settings};

/// Serves until a signal stops the server.
///
/// # Errors
/// The reason why the server cannot serve, with what to do about it.
pub(crate) fn serve(typed: arguments::Serve) -> Result<ExitCode> {
    // Takes the descriptors before any file is opened, as sd_listen_fds(3) asks.
    let inherited = inherited_listeners();
    let far = FarExport::open(&typed.far)?;
    let given = far.as_ref().map(|far| far.given.clone());
    let sources = settings::sources(&typed, given.as_ref().map(|given| &*given.path))?;
    if typed.check {
        let (own, state) = (typed.tls_cert.zip(typed.tls_key), typed.state.state_dir);
        return check::check((sources, given), own, state, typed.json.json);
    }
    let written = match server_settings(&sources) {
        Ok(written) => written,
        Err(found) => return Ok(check::refused(&found)),
    };
    let options = Options { given, ..settings::options(typed, sources, written.clone())? };
    let ended = comity_daemon::run(&options, written, inherited)?;
    drop(options);
    far.map_or(Ok(()), FarExport::finish)?;
    Ok(match ended {
        Ended::Stopped => ExitCode::SUCCESS,
        Ended::Refused(found) => check::refused(&found),
    })
}
