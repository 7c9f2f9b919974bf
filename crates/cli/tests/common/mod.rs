//! A running `comity serve`, and helpers for several tests.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on ends"
)]

pub mod four;
pub mod line;
pub mod mirrored;
pub mod placed;
pub mod raw;
pub mod whereabouts;
pub mod world;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest time that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The uid and gid of a user without rights, called nobody on most systems.
pub const NOBODY: u32 = 65_534;

/// The program, without the environment variables of this process that it would read.
pub fn comity() -> Command {
    command(Path::new(env!("CARGO_BIN_EXE_comity")))
}

fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("NOTIFY_SOCKET").env_remove("XDG_STATE_HOME").env_remove("RUST_BACKTRACE");
    command
}

/// The output of a program and its exit code.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

/// Runs a program to its end.
pub fn run(command: &mut Command) -> Said {
    let output = assert_cmd::Command::from_std(std::mem::replace(command, Command::new("false")))
        .timeout(PATIENCE)
        .output()
        .unwrap();
    Said {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder for one test, with the exported data and the state of the server.
pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("data")).unwrap();
        Self { folder }
    }

    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// `comity serve` with arguments; it prints JSON and takes any free port.
    pub fn serve(&self, what: &[&str]) -> Command {
        let mut command = comity();
        command.args(["serve", "--json", "--port", "0", "--listen", "127.0.0.1", "--no-register"]);
        command.arg("--state-dir").arg(self.state()).args(what);
        command
    }

    /// `comity serve` of the data folder.
    pub fn serve_data(&self) -> Command {
        let mut command = self.serve(&[]);
        command.arg(self.data());
        command
    }

    /// The program as the user nobody: a copy that every user can run, with all files here given to
    /// nobody.
    pub fn as_nobody(&self, arguments: &[&str]) -> Command {
        use std::os::unix::fs::{PermissionsExt, chown};
        let program = self.path("comity");
        // Copy with `cp`: if this process copied it, a child that another test forks meanwhile
        // would hold the file open for writing, and executing it would fail with ETXTBSY.
        let here = Path::new(env!("CARGO_BIN_EXE_comity"));
        assert!(Command::new("cp").args([here, &program]).status().unwrap().success());
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(self.data(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut command = command(&program);
        command.uid(NOBODY).gid(NOBODY).current_dir("/").args(arguments);
        command
    }
}

/// Returns whether this test may become another user; prints why if it may not.
pub fn is_root() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("skipped: only root can become another user");
    }
    root
}

/// Returns whether this test may mount by FUSE; prints why if it may not.
pub fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        println!("skipped: needs root and /dev/fuse");
    }
    can
}

/// A server that runs until it is dropped.
pub struct Running {
    child: Child,
    log: fs::File,
    /// The JSON that the server printed when it started.
    pub said: Value,
    pub port: u16,
}

impl Running {
    /// Starts a server and waits until it serves.
    pub fn start(command: &mut Command) -> Self {
        Self::start_with_log(command, tempfile::tempfile().unwrap())
    }

    /// Starts a server that logs to a file, and waits until it serves.
    pub fn start_with_log(command: &mut Command, log: fs::File) -> Self {
        let errors = Stdio::from(log.try_clone().unwrap());
        let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            let _ = sender.send(line);
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap();
        if line.is_empty() {
            let status = child.wait().unwrap();
            panic!("no server: {status}: {}", read(log));
        }
        let said: Value = serde_json::from_str(&line).unwrap();
        let port = said["port"].as_u64().unwrap() as u16;
        Self { child, log, said, port }
    }

    /// Returns what the server has logged so far.
    pub fn log(&self) -> String {
        let mut text = vec![0; self.log.metadata().unwrap().len() as usize];
        // The server goes on writing at the offset that it shares with this descriptor.
        self.log.read_exact_at(&mut text, 0).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Kills the server, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the server by a signal and waits until it has ended.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not end on SIGTERM");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The metrics page of a server that has one.
pub fn metrics(server: &Running) -> String {
    let url = server.said["metrics"].as_str().unwrap();
    metrics_at(url.strip_prefix("http://").unwrap().strip_suffix("/metrics").unwrap())
}

/// The metrics page at an address.
pub fn metrics_at(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

/// Waits until a condition holds; panics after [`PATIENCE`].
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn read(mut file: fs::File) -> String {
    use std::io::Seek;
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.map_or_else(|error| format!("no log: {error}"), |_| text)
}
