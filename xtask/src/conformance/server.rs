//! A server for one run, which is started again when a test kills it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Longest time the server may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program that pynfs calls to restart the server or to change files on it. Pynfs expects a
/// recall as soon as this program has ended; but the kernel reports the change only then, and the
/// callback uses another connection.
const HELPER: &str = r#"#!/bin/sh
folder=$1 command=$2
shift 2
case $command in
reboot)
    before=$(cat "$folder/pid")
    kill -9 "$before"
    for _ in $(seq 200); do
        [ "$(cat "$folder/pid")" != "$before" ] && break
        sleep 0.1
    done ;;
unlink) rm "$1" && sleep 1 ;;
rename) mv "$1" "$2" && sleep 1 ;;
link) ln "$1" "$2" && sleep 1 ;;
chmod) chmod "$1" "$2" && sleep 1 ;;
esac
"#;

/// A second export directly below the root, which tests enter and leave. This folder exists on
/// every machine (FHS).
pub(super) const SPECIAL: &str = "/srv";

/// A running server in a folder of its own.
pub(super) struct Server {
    folder: PathBuf,
    port: u16,
    done: Arc<AtomicBool>,
    supervisor: Option<JoinHandle<()>>,
}

impl Server {
    /// Makes the folder again and serves a part of it, where root is not squashed.
    ///
    /// # Errors
    /// If the folder cannot be made, or the server does not listen.
    pub(super) fn start(program: &Path, folder: &Path, lease_seconds: u32) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        furnish(folder)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new(program);
        command.args(["serve", "--listen", "127.0.0.1", "--no-register"]);
        command.args(["--port", &port.to_string()]);
        command.args(["--lease-seconds", &lease_seconds.to_string()]);
        command.arg("--exports").arg(folder.join("exports"));
        command.arg("--state-dir").arg(folder.join("state"));
        let log = fs::File::create(folder.join("server.log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let done = Arc::new(AtomicBool::new(false));
        let first = spawn(&mut command, (folder, port))?;
        let supervisor = {
            let (done, folder) = (Arc::clone(&done), folder.to_path_buf());
            thread::spawn(move || keep(&mut command, first, &done, (&folder, port)))
        };
        Ok(Self { folder: folder.to_path_buf(), port, done, supervisor: Some(supervisor) })
    }

    /// The URL of the export that pynfs tests.
    pub(super) fn url(&self) -> String {
        format!("127.0.0.1:{}{}", self.port, self.folder.join("export").display())
    }

    /// The program that pynfs calls for changes on this machine.
    pub(super) fn helper(&self) -> PathBuf {
        self.folder.join("helper")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.done.store(true, Ordering::SeqCst);
        let pid = fs::read_to_string(self.folder.join("pid")).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
            // The server may have ended by itself.
            let _ = kill_process(pid, Signal::TERM);
        }
        if let Some(supervisor) = self.supervisor.take() {
            let _ = supervisor.join();
        }
    }
}

fn furnish(folder: &Path) -> Result<()> {
    let export = folder.join("export");
    fs::create_dir_all(&export)?;
    fs::create_dir_all(folder.join("state"))?;
    fs::set_permissions(&export, fs::Permissions::from_mode(0o777))?;
    let options = "127.0.0.0/8(rw,sync,insecure,no_root_squash,no_subtree_check,utf8_names)";
    let special = format!("{SPECIAL} 127.0.0.0/8(ro,insecure)");
    fs::write(folder.join("exports"), format!("{} {options}\n{special}\n", export.display()))?;
    fs::write(folder.join("helper"), HELPER)?;
    fs::set_permissions(folder.join("helper"), fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Starts the server again whenever it ends, until `done` is set.
fn keep(command: &mut Command, first: Child, done: &AtomicBool, place: (&Path, u16)) {
    let mut child = first;
    loop {
        // The tests find out whether it ended with success.
        let _ = child.wait();
        if done.load(Ordering::SeqCst) {
            return;
        }
        match spawn(command, place) {
            Ok(next) => child = next,
            Err(error) => return eprintln!("xtask: {error:#}"),
        }
    }
}

/// Starts the server; returns when it listens.
fn spawn(command: &mut Command, (folder, port): (&Path, u16)) -> Result<Child> {
    let mut child = command.spawn().context("start comity")?;
    let until = Instant::now() + PATIENCE;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let log = folder.join("server.log");
        ensure!(child.try_wait()?.is_none(), "the server ended; log: {}", log.display());
        ensure!(Instant::now() < until, "the server does not listen; log: {}", log.display());
        thread::sleep(Duration::from_millis(20));
    }
    fs::write(folder.join("pid"), child.id().to_string())?;
    Ok(child)
}
