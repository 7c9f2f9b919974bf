//! The data servers of a test of parallel NFS, in addition to the server under test.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::network::{Network, SERVER};

/// The port of the first data server.
const FIRST_PORT: u16 = 2051;

/// The stripe unit in bytes.
pub(super) const UNIT_BYTES: usize = 64 << 10;

/// Longest time that a data server may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// Data servers that run until this is dropped.
pub(super) struct DataServers(Vec<Child>);

impl DataServers {
    /// Starts data servers in a folder, and writes the configuration of their metadata server
    /// there.
    ///
    /// # Errors
    /// If one does not listen in time; its log is in the folder.
    pub(super) fn start(
        network: &Network,
        program: &Path,
        (folder, export): (&Path, &Path),
        count: u16,
    ) -> Result<Self> {
        let mut all = Self(Vec::new());
        if count == 0 {
            return Ok(all);
        }
        let key = folder.join("placement.key");
        fs::write(&key, "000102030405060708090a0b0c0d0e0f\n")?;
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600))?;
        fs::write(config(folder), text(&key, export, count))?;
        for number in 0..count {
            all.0.push(spawn(network, program, (folder, &key), number)?);
        }
        let until = Instant::now() + PATIENCE;
        while !(0..count).all(|number| network.listens(FIRST_PORT + number)) {
            ensure!(Instant::now() < until, "no data server listens; see {}", folder.display());
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(all)
    }
}

impl Drop for DataServers {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The configuration of the metadata server.
pub(super) fn config(folder: &Path) -> PathBuf {
    folder.join("config.toml")
}

/// The folder of a data server.
pub(super) fn data(folder: &Path, number: u16) -> PathBuf {
    folder.join(format!("data-{number}"))
}

fn text(key: &Path, export: &Path, count: u16) -> String {
    let server = |number| {
        format!("{{ name = \"{number}\", address = \"{SERVER}:{}\" }}, ", FIRST_PORT + number)
    };
    let servers: String = (0..count).map(server).collect();
    format!(
        "[[export]]\npath = {export:?}\noptions = [\"rw\", \"no_root_squash\"]\n\
         clients = [{{ client = \"10.77.0.0/24\" }}]\n\n[[placement]]\nexport = {export:?}\n\
         key = {key:?}\nstripe_unit_bytes = {UNIT_BYTES}\ndata_servers = [{servers}]\n\
         threshold = {{ read_file_bytes = {UNIT_BYTES}, write_file_bytes = {UNIT_BYTES} }}\n"
    )
}

fn spawn(
    network: &Network,
    program: &Path,
    (folder, key): (&Path, &Path),
    number: u16,
) -> Result<Child> {
    let data = data(folder, number);
    fs::create_dir_all(&data)?;
    let log = fs::File::create(folder.join(format!("data-{number}.log")))?;
    let (port, state) = ((FIRST_PORT + number).to_string(), folder.join(format!("state-{number}")));
    let text = |path: &Path| path.display().to_string();
    let (program, key, state, data) = (text(program), text(key), text(&state), text(&data));
    let mut command = network.command(&[
        &program,
        "serve",
        "--no-register",
        "--listen",
        SERVER,
        "--port",
        &port,
        "--for",
        SERVER,
        "--placement-key",
        &key,
        "--state-dir",
        &state,
        "--data-server",
        &data,
    ]);
    command.stdout(log.try_clone()?).stderr(log).spawn().context("start a data server")
}
