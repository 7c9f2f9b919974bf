//! The server to which a test moves the exports of the server under test, and back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::ground::output;
use super::network::{Network, SERVER};

/// Its address.
pub(super) const ADDRESS: &str = "10.77.0.2";

/// Longest time that it may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs until this is dropped.
pub(super) struct OtherServer(Child);

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes what both servers need before they start: the key of handles and empty configurations.
///
/// # Errors
/// If a file cannot be written.
pub(super) fn prepare(folder: &Path) -> Result<()> {
    for (state, name) in [("state", "a"), ("state-b", "b")] {
        fs::create_dir_all(folder.join(state))?;
        let key = folder.join(state).join("handle.key");
        fs::write(&key, [7; 16])?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        fs::write(config(folder, name), "")?;
    }
    Ok(())
}

/// The configuration of a server.
pub(super) fn config(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.toml"))
}

impl OtherServer {
    /// Starts it, and has both servers know each other; the one under test serves the folder.
    ///
    /// # Errors
    /// If it does not answer in time, or a configuration is refused.
    pub(super) fn start(
        network: &Network,
        program: &Path,
        (folder, export): (&Path, &Path),
    ) -> Result<Self> {
        let bridge = ["ip", "addr", "add", &format!("{ADDRESS}/24"), "dev", "br0"];
        ensure!(network.command(&bridge).status()?.success(), "cannot add {ADDRESS}");
        let log = fs::File::create(folder.join("server-b.log"))?;
        let (program, config_b) = (program.display().to_string(), config(folder, "b"));
        let (config_b, state) = (config_b.display().to_string(), folder.join("state-b"));
        let state = state.display().to_string();
        let options = ["--listen", ADDRESS, "--port", "2049", "--no-register"];
        let more = ["--no-local-locks", "--config", &config_b, "--state-dir", &state];
        let mut command = network.command(&[&[&program, "serve"], &options[..], &more].concat());
        let child = command.stdout(log.try_clone()?).stderr(log).spawn();
        let other = Self(child.context("start the other server")?);
        let keys = [key(&program, &folder.join("state"))?, key(&program, &folder.join("state-b"))?];
        fs::write(config(folder, "a"), text(export, ("b", ADDRESS, &keys[1]), ""))?;
        fs::write(config(folder, "b"), text(export, ("a", SERVER, &keys[0]), ", \"home=a\""))?;
        for state in ["state", "state-b"] {
            let state = folder.join(state).display().to_string();
            output(&program, &["reload", "--state-dir", &state])?;
        }
        Ok(other)
    }
}

/// The key that a running server proves by TLS.
fn key(program: &str, state: &Path) -> Result<String> {
    let until = Instant::now() + PATIENCE;
    let state = state.display().to_string();
    loop {
        match output(program, &["status", "--json", "--state-dir", &state]) {
            Ok(said) => {
                let said: serde_json::Value = serde_json::from_str(&said)?;
                return said["tls_key"].as_str().map(str::to_owned).context("no key for TLS");
            }
            Err(why) => ensure!(Instant::now() < until, "{why:#}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The configuration of a server. Linux comes to another server from a port above 1023.
fn text(export: &Path, (name, address, key): (&str, &str, &str), home: &str) -> String {
    format!(
        "[[peer]]\nname = \"{name}\"\naddress = \"{address}\"\nkey = \"{key}\"\n\n\
         [[export]]\npath = {export:?}\n\
         options = [\"rw\", \"no_root_squash\", \"insecure\"{home}]\n\
         clients = [{{ client = \"10.77.0.0/24\" }}]\n"
    )
}
