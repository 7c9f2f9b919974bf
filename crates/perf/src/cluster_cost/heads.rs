//! Heads of a cluster on this machine.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use comity_bench::process::{StartedServer, resident_kib};
use comity_bench::targets::free_address;
use serde_json::Value;

/// Seconds that a head has to start.
const START_SECONDS: u64 = 120;

/// Heads and their exports.
pub(super) struct Heads {
    program: PathBuf,
    folder: PathBuf,
    /// The number of exports.
    pub(super) exports: usize,
    heads: Vec<(SocketAddr, StartedServer)>,
}

impl Heads {
    /// Starts heads; each is the home of as many exports as the others.
    pub(super) fn start(
        (program, folder): (&Path, &Path),
        (count, exports): (usize, usize),
        etcd: &str,
    ) -> Result<Self> {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        let mut heads = Self { program, folder, exports, heads: Vec::new() };
        heads.configure(count)?;
        for head in 0..count {
            let started = heads.start_one(head, etcd)?;
            heads.heads.push(started);
        }
        Ok(heads)
    }

    fn configure(&self, count: usize) -> Result<()> {
        let mut text = String::new();
        for export in 0..self.exports {
            let path = self.path(export);
            fs::create_dir_all(&path)?;
            let file = path.join("file");
            fs::write(&file, "")?;
            // The clients are not root.
            fs::set_permissions(&file, fs::Permissions::from_mode(0o666))?;
            text += &format!(
                "[[export]]\npath = {path:?}\n\
                 options = [\"rw\", \"insecure\", \"no_root_squash\", \"home={}\"]\n\
                 clients = [{{ client = \"127.0.0.1\" }}]\n",
                name(export % count)
            );
        }
        Ok(fs::write(self.folder.join("heads.toml"), text)?)
    }

    fn start_one(&self, head: usize, etcd: &str) -> Result<(SocketAddr, StartedServer)> {
        let (state, banner) = (self.state(head), self.folder.join(format!("{head}.json")));
        if head > 0 {
            fs::create_dir(&state)?;
            fs::copy(self.state(0).join("handle.key"), state.join("handle.key"))?;
        }
        let address = free_address()?;
        let mut command = Command::new(&self.program);
        command.args(["serve", "--json", "--no-register", "--no-local-locks"]);
        command.args(["--listen", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--cluster", etcd, "--head", &name(head)]);
        command.arg("--state-dir").arg(state).arg("--config").arg(self.folder.join("heads.toml"));
        command.stdout(File::create(&banner)?);
        command.stderr(File::create(self.folder.join(format!("{head}.log")))?);
        let processors: Vec<usize> = (0..std::thread::available_parallelism()?.get()).collect();
        let mut server = StartedServer::start(&mut command, &processors)?;
        let has_said = || fs::metadata(&banner).is_ok_and(|said| said.len() > 0);
        server.until(START_SECONDS, has_said).with_context(|| {
            let log = fs::read_to_string(self.folder.join(format!("{head}.log")));
            format!("head {head} does not start: {}", log.unwrap_or_default())
        })?;
        Ok((address, server))
    }

    /// The folder of an export.
    pub(super) fn path(&self, export: usize) -> PathBuf {
        self.folder.join(format!("exports/export-{export:04}"))
    }

    /// The address of a head.
    pub(super) fn address(&self, head: usize) -> Result<SocketAddr> {
        self.heads.get(head).map(|it| it.0).context("no such head")
    }

    /// Resident memory of a head in MiB.
    pub(super) fn resident_mib(&self, head: usize) -> Result<f64> {
        let (_, server) = self.heads.get(head).context("no such head")?;
        Ok(resident_kib(server.id())? as f64 / 1024.0)
    }

    /// Kills the last head, so that its lease ends by itself.
    pub(super) fn kill_last(&mut self) -> Result<()> {
        let (_, server) = self.heads.pop().context("no head is left")?;
        let id = rustix::process::Pid::from_raw(server.id() as i32).context("no process")?;
        rustix::process::kill_process(id, rustix::process::Signal::KILL)?;
        drop(server);
        Ok(())
    }

    /// Returns how many exports are as `is_so` says, by `comity cluster status` at a head.
    pub(super) fn count(&self, head: usize, is_so: impl Fn(&Value) -> bool) -> Result<usize> {
        let status = self.ask(head, &["cluster", "status", "--json"])?;
        let exports = status["exports"].as_array().context("no exports are shown")?;
        Ok(exports.iter().filter(|export| is_so(export)).count())
    }

    /// Moves an export from a head to another one.
    pub(super) fn move_export(&self, export: usize, (from, to): (usize, usize)) -> Result<()> {
        let path = self.path(export).display().to_string();
        let words = ["cluster", "move", &path, "--to", &name(to), "--json"];
        self.ask(from, &words).map(drop)
    }

    fn ask(&self, head: usize, words: &[&str]) -> Result<Value> {
        let said = Command::new(&self.program)
            .args(words)
            .arg("--state-dir")
            .arg(self.state(head))
            .output()?;
        ensure!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr).trim());
        serde_json::from_slice(&said.stdout).context("the answer of comity cluster")
    }

    fn state(&self, head: usize) -> PathBuf {
        self.folder.join(format!("state-{head}"))
    }
}

fn name(head: usize) -> String {
    format!("head-{head}")
}
