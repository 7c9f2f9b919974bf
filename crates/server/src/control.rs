//! The socket by which a running server is asked and told: one JSON object a line each way.

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::{CONTROL_LINE_BYTES_MAX, CONTROL_PATIENCE_SECONDS};

/// What a server is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Read the configuration again.
    Reload,
    /// How is it?
    Status,
    /// Log so much from now on; without a level: how much is logged?
    LogLevel {
        /// As on the command line.
        level: Option<String>,
    },
    /// What is exported, and with a client's address: what of it would it see?
    Exports {
        /// The client.
        client: Option<IpAddr>,
    },
    /// Which clients are there? Some of them, those after one.
    Clients {
        /// The last one that was told before.
        after: Option<String>,
    },
    /// What does a client have? Some of it, what is after one of its states.
    Client {
        /// Which.
        client: String,
        /// The last state that was told before.
        after: Option<u32>,
    },
    /// Who waits for whom?
    Waits {
        /// Only what this one waits for.
        client: Option<String>,
    },
    /// Send a client away and free all it has.
    Evict {
        /// Which.
        client: String,
    },
    /// What would a call get, and by which rules?
    Explain {
        /// The path of the export.
        export: PathBuf,
        /// What the call is about.
        path: PathBuf,
        /// The client.
        from: IpAddr,
        /// The user in its credential.
        uid: u32,
        /// The primary group.
        gid: u32,
        /// Supplementary groups.
        groups: Vec<u32>,
        /// What is to be done.
        operation: String,
    },
}

/// What a server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// What was asked for.
    Done(Value),
    /// Why it was not done.
    Failed(String),
}

/// Who does what is asked.
pub trait Steward: Send + Sync + 'static {
    /// Does it, or says in one line why not. Requests come one after the other.
    fn perform(&self, request: Request) -> Answer;
}

/// The open socket.
pub struct ControlSocket {
    path: PathBuf,
    bell: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody answers there.
    #[error("no server answers at {path}: {source}")]
    Absent {
        /// The path of the socket.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It broke off.
    #[error("the server broke off: {0}")]
    Broken(#[from] io::Error),
    /// It said something else.
    #[error("the server's answer makes no sense: {0}")]
    Answer(#[from] serde_json::Error),
}

impl ControlSocket {
    /// Opens the socket at `path`, in a folder that no other server uses: what is left there of an
    /// earlier one is removed. Only root and the server's own user are heard.
    ///
    /// # Errors
    /// What the system says.
    pub fn start(path: &Path, steward: impl Steward) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let rung = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&listener, &rung, &steward))?;
        Ok(Self { path: path.to_owned(), bell, thread })
    }

    /// Closes and removes it.
    pub fn shutdown(self) {
        // An event counter that was never rung takes a ring.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        let _ = self.thread.join();
        // Somebody else may have removed it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Asks the server whose control socket is at `path`.
///
/// # Errors
/// [`AskError`].
pub fn ask(path: &Path, request: &Request) -> Result<Answer, AskError> {
    let absent = |source| AskError::Absent { path: path.to_owned(), source };
    let mut stream = UnixStream::connect(path).map_err(absent)?;
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

fn listen(listener: &UnixListener, bell: &OwnedFd, steward: &impl Steward) {
    loop {
        let mut polled = [PollFd::new(listener, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        let _ = poll(&mut polled, None);
        let [asked, rung] = polled.map(|polled| !polled.revents().is_empty());
        if rung {
            return;
        }
        if !asked {
            continue;
        }
        let heard = listener.accept().and_then(|(stream, _)| hear(&stream, steward));
        if let Err(error) = heard {
            tracing::warn!(%error, "a request at the control socket failed");
        }
    }
}

/// Answers one peer, line by line.
fn hear(stream: &UnixStream, steward: &impl Steward) -> io::Result<()> {
    let patience = Some(Duration::from_secs(CONTROL_PATIENCE_SECONDS));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let peer = socket_peercred(stream)?;
    if !peer.uid.is_root() && peer.uid != geteuid() {
        let refused = format!("user {} may not control this server", peer.uid.as_raw());
        tracing::warn!(process = peer.pid.as_raw_nonzero().get(), "{refused}");
        return say(stream, &Answer::Failed(refused));
    }
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = String::new();
        (&mut lines).take(CONTROL_LINE_BYTES_MAX).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => steward.perform(request),
            Err(error) => Answer::Failed(format!("request not understood: {error}")),
        };
        say(stream, &answer)?;
        if !line.ends_with('\n') {
            return Ok(());
        }
    }
}

fn say(mut stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Steward for Echo {
        fn perform(&self, request: Request) -> Answer {
            match request {
                Request::Reload => Answer::Failed("line 3: no such folder".to_owned()),
                other => Answer::Done(serde_json::to_value(other).unwrap_or_default()),
            }
        }
    }

    #[test]
    fn requests_are_performed_and_failures_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        std::fs::write(&path, "left by an earlier server").unwrap();
        let socket = ControlSocket::start(&path, Echo).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let failed = Answer::Failed("line 3: no such folder".to_owned());
        assert_eq!(ask(&path, &Request::Reload).unwrap(), failed);
        let request = Request::LogLevel { level: Some("debug".to_owned()) };
        let done = serde_json::json!({"command": "log-level", "level": "debug"});
        assert_eq!(ask(&path, &request).unwrap(), Answer::Done(done));
        socket.shutdown();
        assert!(matches!(ask(&path, &Request::Status), Err(AskError::Absent { .. })));
        assert!(!path.exists());
    }

    #[test]
    fn what_is_no_request_is_answered_and_a_long_line_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let socket = ControlSocket::start(&path, Echo).unwrap();
        for line in ["{\"command\":\"explode\"}\n".to_owned(), "x".repeat(1 << 20) + "\n"] {
            let mut stream = UnixStream::connect(&path).unwrap();
            // A server that has cut the line and gone does not take the rest.
            let _ = stream.write_all(line.as_bytes());
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            assert!(answer.contains("not understood"), "{answer}");
        }
        socket.shutdown();
    }
}
