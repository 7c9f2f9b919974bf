//! Talking with a running server: a UNIX socket in its state folder, a line of JSON each way.

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::Mode;
use rustix::process::umask;
use serde_json::{Value, json};

use crate::state::control_socket;

/// Longest line in bytes: a request names a command and a log level.
const REQUEST_BYTES_MAX: u64 = 4096;

/// Longest time for somebody who connected to ask. One is served after the other.
const ASKING_SECONDS: u64 = 5;

/// Longest time for an answer: a reload may look up the names of many hosts.
const ANSWER_SECONDS: u64 = 120;

/// What can be asked of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// To read its configuration again.
    Reload,
    /// How it is.
    Status,
    /// To log more or less.
    Log(String),
}

/// The server's end.
pub(crate) struct Control(UnixListener);

impl Control {
    /// Opens the socket of the server that owns this state folder; only its user may talk to it.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn open(state_folder: &Path) -> Result<Self> {
        let path = control_socket(state_folder)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot replace {}", path.display()));
            }
            _ => {}
        }
        // Nobody else may connect, not even before a change of mode.
        let before = umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(&path);
        umask(before);
        Ok(Self(listener.with_context(|| format!("cannot make {}", path.display()))?))
    }

    /// Answers on a thread of its own as long as the process lives.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub(crate) fn answer(self, answer: impl Fn(Request) -> Value + Send + 'static) -> Result<()> {
        let serve = move || {
            for stream in self.0.incoming() {
                let served = stream.and_then(|stream| serve_one(stream, &answer));
                if let Err(error) = served {
                    tracing::debug!(%error, "a control connection failed");
                }
            }
        };
        std::thread::Builder::new().name("control".into()).spawn(serve)?;
        Ok(())
    }
}

/// Asks the server with this state folder.
///
/// # Errors
/// If none runs there or it may not be asked: says what to do.
pub(crate) fn ask(state_folder: &Path, request: &Request) -> Result<Value> {
    let shown = state_folder.display();
    let mut stream = match UnixStream::connect(control_socket(state_folder)?) {
        Ok(stream) => stream,
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => bail!(
                "no server runs with the state folder {shown}; start one, or name its folder with \
                 --state-dir"
            ),
            ErrorKind::PermissionDenied => bail!(
                "no permission to talk to the server with the state folder {shown}; do it as the user \
                 who runs it"
            ),
            _ => return Err(error).with_context(|| format!("no server in {shown}")),
        },
    };
    stream.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS)))?;
    writeln!(stream, "{}", written(request))?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).context("the server does not answer; see its log")?;
    serde_json::from_str(&answer).context("the server ended without an answer; see its log")
}

fn serve_one(stream: UnixStream, answer: &impl Fn(Request) -> Value) -> io::Result<()> {
    let patience = Some(Duration::from_secs(ASKING_SECONDS));
    stream.set_read_timeout(patience)?;
    stream.set_write_timeout(patience)?;
    let mut line = String::new();
    BufReader::new((&stream).take(REQUEST_BYTES_MAX)).read_line(&mut line)?;
    let said = match read(&line) {
        Ok(request) => answer(request),
        Err(error) => json!({ "ok": false, "error": error.to_string() }),
    };
    writeln!(&stream, "{said}")
}

fn written(request: &Request) -> Value {
    match request {
        Request::Reload => json!({ "command": "reload" }),
        Request::Status => json!({ "command": "status" }),
        Request::Log(level) => json!({ "command": "log", "level": level }),
    }
}

fn read(line: &str) -> Result<Request> {
    let said: Value = serde_json::from_str(line)?;
    let level = || said["level"].as_str().map(str::to_owned).context("no level");
    match said["command"].as_str() {
        Some("reload") => Ok(Request::Reload),
        Some("status") => Ok(Request::Status),
        Some("log") => Ok(Request::Log(level()?)),
        _ => Err(anyhow!("no such command: expected reload, status or log")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_request_comes_over_as_it_was_and_its_answer_back() {
        let folder = tempfile::tempdir().unwrap();
        let control = Control::open(folder.path()).unwrap();
        let socket = control_socket(folder.path()).unwrap();
        let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        control.answer(|request| json!({ "heard": format!("{request:?}") })).unwrap();
        for request in [Request::Reload, Request::Status, Request::Log("a\n\"b\"".into())] {
            let answer = ask(folder.path(), &request).unwrap();
            assert_eq!(answer["heard"], format!("{request:?}"));
        }
        let mut stream = UnixStream::connect(&socket).unwrap();
        writeln!(stream, "nonsense").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\""), "{answer}");
    }

    #[test]
    fn without_a_server_it_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let error = ask(folder.path(), &Request::Status).unwrap_err().to_string();
        assert!(error.contains("no server runs") && error.contains("--state-dir"), "{error}");
    }
}
