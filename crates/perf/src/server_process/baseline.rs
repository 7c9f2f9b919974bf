use std::net::TcpStream;
use std::process::Command;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::limits::START_SECONDS_MAX;
use comity_bench::process::StartedServer;
use comity_bench::targets::free_address;

use super::{SERVER_PROCESSOR, ServerProcess, Speaks};

/// Starts the minimal server: this program again.
///
/// # Errors
/// If the server does not start.
pub fn start(layout: &FixtureTree) -> Result<ServerProcess> {
    let address = free_address()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("raw-server").arg(layout.root()).args(["--port", &address.port().to_string()]);
    let mut server = StartedServer::start(&mut command, &[SERVER_PROCESSOR])?;
    server.until(START_SECONDS_MAX, || TcpStream::connect(address).is_ok()).context("raw")?;
    let (layout, servers) = (layout.clone(), vec![server]);
    Ok(ServerProcess { name: "raw", address, layout, speaks: Speaks::Raw, servers })
}
