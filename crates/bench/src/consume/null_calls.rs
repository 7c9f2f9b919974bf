use std::net::SocketAddr;

use anyhow::{Context, Result};
use comity_proto::nfs3::{PROGRAM, VERSION, procedure};
use comity_remote::rpc::Caller;

use super::duty::Duty;

/// Calls NULL of NFSv3, one call after the other.
///
/// # Errors
/// The server does not answer.
pub(super) fn consume(duty: Duty, server: SocketAddr) -> Result<()> {
    let mut caller = Caller::connect(server).with_context(|| format!("connect to {server}"))?;
    let null = (PROGRAM, VERSION, procedure::NULL);
    duty.keep(|| caller.program(null, &()).map(drop).context("call NULL"))
}
