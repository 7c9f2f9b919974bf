//! Requests of the first guest to this machine during a test: it writes a line to the file `ask` in
//! its folder, and reads the result from `told`.

use std::fs;

use anyhow::{Context, Result, bail};

use super::ground::{Ground, output};
use super::guest::Guest;
use super::keys::{Keys, SERVER_NAME};
use super::server::Server;

/// Longest time in seconds of a process on this machine.
const LOCAL_SECONDS: &str = "60";

/// Does the request of the guest, if there is one.
///
/// # Errors
/// If it fails or is unknown.
pub(super) fn grant(
    ground: &Ground,
    server: &mut Server<'_>,
    guests: &mut Vec<Guest>,
) -> Result<()> {
    let ask = ground.guest(1).join("ask");
    let Ok(wish) = fs::read_to_string(&ask) else { return Ok(()) };
    fs::remove_file(ask)?;
    let told = match wish.trim().split_once(' ').unwrap_or((wish.trim(), "")) {
        // Kills the server with SIGKILL and starts it again.
        ("restart", "") => server.kill_and_restart().map(|()| String::new())?,
        ("restart-other", "") => server.kill_and_restart_other().map(|()| String::new())?,
        // Ends the server by SIGTERM and starts it again.
        ("end-and-start", "") => server.restart().map(|()| String::new())?,
        // Kills a guest that has not unmounted.
        ("lose", number) => {
            let number: u8 = number.parse()?;
            guests.retain(|guest| guest.number() != number);
            String::new()
        }
        // Runs a process of this machine in the exported folder.
        ("local", script) => local(ground, script)?,
        // Runs commands of `comity` on this machine.
        ("admin", script) => server.administer(script)?,
        // Runs commands on the host of a data server.
        ("on", words) => server.run_on_host(words)?,
        // Gives the server another key while it runs.
        ("renew", name) => renew(ground, server, name)?,
        _ => bail!("a guest sent the unknown request `{}`", wish.trim()),
    };
    let draft = ground.folder().join("told");
    fs::write(&draft, told)?;
    fs::rename(draft, ground.guest(1).join("told")).context("answer a guest")
}

/// Replaces the server's key by another one of the test, and lets the server load it.
fn renew(ground: &Ground, server: &mut Server<'_>, name: &str) -> Result<String> {
    Keys::of(ground)?.replace(SERVER_NAME, name)?;
    server.read_again()?;
    Ok(String::new())
}

fn local(ground: &Ground, script: &str) -> Result<String> {
    let export = ground.export().display().to_string();
    let arguments = [LOCAL_SECONDS, "sh", "-c", "cd \"$0\" && eval \"$1\"", &export, script];
    output("timeout", &arguments)
}
