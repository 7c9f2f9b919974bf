use std::net::SocketAddr;
use std::process::{Command, Stdio};

use anyhow::Result;
use comity_bench::process::StartedServer;

use super::shaped_line::BITS_PER_SECOND;
use crate::server_process::TestBed;

/// A consumer ends by itself after this time, in seconds, if nobody ends it.
const SECONDS_MAX: &str = "120";

/// A consumer of one resource: `comity bench consume`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Consumer {
    Cpu,
    Memory,
    Disk,
    Seek,
    /// Datagrams over a line of so many bits a second.
    Network(&'static str),
    Rpc,
}

impl Consumer {
    pub(crate) const ALL: [Self; 6] = [
        Self::Cpu,
        Self::Memory,
        Self::Disk,
        Self::Seek,
        Self::Network(BITS_PER_SECOND),
        Self::Rpc,
    ];

    /// The receiver of datagrams: the port of the discard protocol.
    pub(super) const SINK: &str = "127.0.0.1:9";

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Seek => "seek",
            Self::Network(_) => "network",
            Self::Rpc => "rpc",
        }
    }

    /// Starts the consumer on a processor, that of the server.
    ///
    /// # Errors
    /// If the program does not exist.
    pub(crate) fn start(
        self,
        bed: &TestBed,
        (server, processor): (SocketAddr, usize),
        level: f64,
    ) -> Result<StartedServer> {
        let mut command = Command::new(bed.program());
        command.args(["bench", "consume", self.name(), "--seconds", SECONDS_MAX]);
        command.args(["--level", &level.to_string()]).stdout(Stdio::null());
        match self {
            Self::Cpu => command.args(["--threads", "1"]),
            Self::Memory => &mut command,
            Self::Disk | Self::Seek => command.arg("--directory").arg(&bed.work),
            Self::Network(speed) => command.args(["--to", Self::SINK, "--bits-per-second", speed]),
            Self::Rpc => command.args(["--server", &server.to_string()]),
        };
        StartedServer::start(&mut command, &[processor])
    }
}
