//! `comity bench agent`: empties a server's caches when a client that measures asks for it.
//!
//! An RPC program of our own over TCP. Byrd and Moser's client made the server unmount and mount
//! its disk between runs by RPC; the agent does this for any server, by any command.

mod program;
mod server;

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use comity_xdr::{Decoder, Opaque};

use comity_remote::rpc::{Caller, RESULTS_AT};
use program::{FLUSH, PROGRAM, TEXT_BYTES_MAX, VERSION};

pub use server::{Agent, PORT};

/// Asks an agent to empty its machine's caches, and waits until it has.
///
/// # Errors
/// The agent cannot be reached, refuses this client, or failed.
pub fn flush(agent: SocketAddr) -> Result<()> {
    let asked = || format!("agent {agent}");
    let absent = || format!("agent {agent}: is `comity bench agent` running there?");
    let mut caller = Caller::connect_as(agent, 0, 0).with_context(absent)?;
    let reply = caller.program((PROGRAM, VERSION, FLUSH), &()).with_context(asked)?;
    let mut results = Decoder::new(&reply[RESULTS_AT..]);
    let status: u32 = results.value().with_context(asked)?;
    let said: Opaque<'_, TEXT_BYTES_MAX> = results.value().with_context(asked)?;
    ensure!(status == 0, "agent {agent}: {}", String::from_utf8_lossy(said.0));
    Ok(())
}
