use std::net::{IpAddr, SocketAddr};
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::agent::{Agent, PORT};

/// See [`Command::Agent`](super::Command::Agent).
#[derive(Debug, Args)]
pub struct AgentOptions {
    /// Answer this address; may be given more than once
    #[arg(long, value_name = "ADDR", required = true)]
    allow: Vec<IpAddr>,

    /// Listen at this address and port
    #[arg(long, value_name = "ADDR:PORT", default_value_t = SocketAddr::from(([0, 0, 0, 0], PORT)))]
    listen: SocketAddr,

    /// Run this by sh instead of dropping the kernel's caches; may be given more than once
    #[arg(long, value_name = "COMMAND")]
    flush: Vec<String>,
}

/// Serves until a signal ends the program.
pub(super) fn perform(options: &AgentOptions) -> Result<ExitCode> {
    let agent = Agent::listen(options.listen, options.allow.clone(), options.flush.clone())?;
    println!("comity bench agent listens at {}", agent.address()?);
    agent.serve(|line| println!("{line}"))?;
    Ok(ExitCode::SUCCESS)
}
