//! A network for one test: a namespace with a bridge, and a tap device for each guest.
//!
//! The namespace has no name: it exists as long as a process in it, and every process in it dies
//! with this one, so that nothing is left behind even after SIGKILL. Different networks use the
//! same addresses and cannot reach each other.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The server's address.
pub(super) const SERVER: &str = "10.77.0.1";

const SETUP: &str = "ip link set lo up && ip link add br0 type bridge && \
    ip addr add 10.77.0.1/24 dev br0 && ip link set br0 up && echo up && exec sleep infinity";

/// The network; it ends when this is dropped.
pub(super) struct Network {
    holder: Child,
}

impl Network {
    /// Makes the namespace and its bridge.
    ///
    /// # Errors
    /// If the right or the programs for this are missing.
    pub(super) fn new() -> Result<Self> {
        let mut holder = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", SETUP])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("start setpriv (Debian: util-linux)")?;
        let mut line = String::new();
        if let Some(out) = holder.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let network = Self { holder };
        ensure!(line == "up\n", "cannot make a network namespace with a bridge");
        Ok(network)
    }

    /// Makes a command that runs in the network and dies with this thread.
    pub(super) fn command(&self, program: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "nsenter"])
            .arg(format!("--net=/proc/{}/ns/net", self.holder.id()))
            .args(program)
            .stdin(Stdio::null());
        command
    }

    /// Makes a tap device on the bridge and returns its name.
    ///
    /// # Errors
    /// If `ip` fails.
    pub(super) fn tap(&self, number: u8) -> Result<String> {
        let device = format!("t{number}");
        let script =
            format!("ip tuntap add dev {device} mode tap && ip link set {device} master br0 up");
        let status = self.command(&["sh", "-c", &script]).status()?;
        if !status.success() {
            bail!("cannot make the tap device {device}: {status}");
        }
        Ok(device)
    }

    /// Returns whether a program listens on a TCP port in the network.
    pub(super) fn listens(&self, port: u16) -> bool {
        listens(self.holder.id(), port)
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // This fails only if the process has ended.
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// Returns whether a program listens on a TCP port in the network namespace of a process.
pub(super) fn listens(process: u32, port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["tcp", "tcp6"].iter().any(|kind| {
        let table = std::fs::read_to_string(format!("/proc/{process}/net/{kind}"));
        table.unwrap_or_default().lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next().unwrap_or_default();
            local.ends_with(&wanted) && fields.nth(1) == Some("0A")
        })
    })
}
