//! The server to which a test moves the exports of the server under test, and back.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::ground::output;
use super::network::{Network, SERVER};
use super::server::Places;

/// Its address.
pub(super) const ADDRESS: &str = "10.77.0.2";

/// Longest time that it may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that runs until this is dropped.
pub(super) struct OtherServer {
    child: Child,
    /// The folder that it alone exports. It is in another file system than the one that moves.
    own: TempDir,
}

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
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
    pub(super) fn start(network: &Network, places: &Places) -> Result<Self> {
        let Places { program, export, folder, .. } = places;
        let bridge = ["ip", "addr", "add", &format!("{ADDRESS}/24"), "dev", "br0"];
        ensure!(network.command(&bridge).status()?.success(), "cannot add {ADDRESS}");
        let own = TempDir::new_in("/dev/shm").context("make a folder in memory")?;
        let other = Self { child: spawn(network, places)?, own };
        let program = program.display().to_string();
        let keys = [key(&program, &folder.join("state"))?, key(&program, &folder.join("state-b"))?];
        let texts = [
            peer("b", ADDRESS, &keys[1]) + &exported(export, ""),
            peer("a", SERVER, &keys[0])
                + &exported(export, ", \"home=a\"")
                + &exported(other.own.path(), ""),
        ];
        for (name, text) in ["a", "b"].into_iter().zip(texts) {
            fs::write(config(folder, name), text)?;
        }
        for state in ["state", "state-b"] {
            let state = folder.join(state).display().to_string();
            output(&program, &["reload", "--state-dir", &state])?;
        }
        Ok(other)
    }

    /// Kills it as a crash would, and starts it again.
    ///
    /// # Errors
    /// If it does not answer again.
    pub(super) fn kill_and_restart(&mut self, network: &Network, places: &Places) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        self.child = spawn(network, places)?;
        key(&places.program.display().to_string(), &places.folder.join("state-b")).map(drop)
    }

    /// The folder that it alone exports.
    pub(super) fn own_export(&self) -> &Path {
        self.own.path()
    }
}

/// Starts the program, with the arguments of the server under test.
fn spawn(network: &Network, Places { program, folder, arguments, .. }: &Places) -> Result<Child> {
    let log = folder.join("server-b.log");
    let log = fs::OpenOptions::new().create(true).append(true).open(log)?;
    let text = |path: &Path| path.display().to_string();
    let (program, config) = (text(program), text(&config(folder, "b")));
    let state = text(&folder.join("state-b"));
    let own = ["--listen", ADDRESS, "--port", "2049", "--config", &config, "--state-dir", &state];
    let mut command = network.command(&[&[&*program, "serve"], &own[..], arguments].concat());
    command.stdout(log.try_clone()?).stderr(log).spawn().context("start the other server")
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

fn peer(name: &str, address: &str, key: &str) -> String {
    format!("[[peer]]\nname = \"{name}\"\naddress = \"{address}\"\nkey = \"{key}\"\n\n")
}

/// An export in a configuration. Linux comes to another server from a port above 1023.
fn exported(folder: &Path, home: &str) -> String {
    format!(
        "[[export]]\npath = {folder:?}\n\
         options = [\"rw\", \"no_root_squash\", \"insecure\"{home}]\n\
         clients = [{{ client = \"10.77.0.0/24\" }}]\n"
    )
}
