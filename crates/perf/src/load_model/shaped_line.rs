use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Bits a second of the line: so few that the consumer fills it with little processor time.
pub(super) const BITS_PER_SECOND: &str = "2e8";

/// The loopback interface of this namespace as a line of [`BITS_PER_SECOND`], until this is
/// dropped.
pub(super) struct ShapedLine;

impl ShapedLine {
    /// Limits the interface by the token bucket filter of the kernel.
    ///
    /// # Errors
    /// The program `tc` is missing, or the kernel has no such filter.
    pub(super) fn begin() -> Result<Self> {
        let bits: f64 = BITS_PER_SECOND.parse()?;
        let mut limit = tc("add");
        limit.args(["tbf", "rate", &format!("{bits}bit"), "burst", "128kb", "latency", "50ms"]);
        let status = limit.status().context("run tc")?;
        ensure!(status.success(), "tc cannot limit the loopback interface: {status}");
        Ok(Self)
    }

    /// Tells a server of a state folder, which is made, what the line carries.
    ///
    /// # Errors
    /// The program does not run, or the folder cannot be made.
    pub(super) fn state(program: &Path, state_folder: &Path) -> Result<()> {
        std::fs::create_dir(state_folder)?;
        let mut command = Command::new(program);
        command.args(["load", "calibrate", "--line", &format!("lo={BITS_PER_SECOND}")]);
        command.arg("--state-dir").arg(state_folder).stdout(Stdio::null());
        let status = command.status().context("run comity load calibrate")?;
        ensure!(status.success(), "comity load calibrate: {status}");
        Ok(())
    }
}

impl Drop for ShapedLine {
    fn drop(&mut self) {
        // A filter that cannot be removed ends with the namespace.
        let _ = tc("del").status();
    }
}

fn tc(verb: &str) -> Command {
    let mut command = Command::new("tc");
    command.args(["qdisc", verb, "dev", "lo", "root"]);
    command
}
