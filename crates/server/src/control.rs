//! The socket by which a running server, or the process of a mount, is queried and controlled, with
//! one JSON object in each line of either direction.

mod request;
mod wait;

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::net::sockopt::socket_peercred;
use rustix::process::geteuid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use socket2::{Domain, SockAddr, Socket, Type};

pub use self::request::Request;
use self::wait::{AnswerLimits, with_pulse};
use crate::limits::{
    CONTROL_ANSWER_SECONDS, CONTROL_LINE_BYTES_MAX, CONTROL_PATIENCE_SECONDS, CONTROL_PEERS_MAX,
};

/// The server's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// The result.
    Done(Value),
    /// The error.
    Failed(String),
}

/// A type of requests that a program accepts at its control socket.
pub trait ControlRequest: Serialize + DeserializeOwned + Send + 'static {
    /// Returns the seconds within which a working program answers. A program that gives no sign of
    /// life is given up sooner.
    fn patience_seconds(&self) -> u64;
}

/// Performs the requests that arrive at the control socket.
pub trait ControlHandler: Send + Sync + 'static {
    /// The type of the requests.
    type Request: ControlRequest;

    /// Returns whether a request waits until the ones before it have been performed.
    fn is_in_turn(_request: &Self::Request) -> bool {
        true
    }

    /// Performs a request, or returns a one-line error.
    fn perform(&self, request: Self::Request) -> Answer;
}

/// A handler may be shared.
impl<H: ControlHandler> ControlHandler for Arc<H> {
    type Request = H::Request;

    fn is_in_turn(request: &H::Request) -> bool {
        H::is_in_turn(request)
    }

    fn perform(&self, request: H::Request) -> Answer {
        H::perform(self, request)
    }
}

/// The open socket.
pub struct ControlSocket {
    path: PathBuf,
    bell: Arc<OwnedFd>,
    thread: JoinHandle<()>,
}

/// Why a server did not answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// No program answers at the socket.
    #[error("no server answers at {path}: {source}")]
    Absent {
        /// The path of the socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The program did not accept or answer the request for this many seconds.
    #[error("the server did not answer within {0} s")]
    Silent(u64),
    /// The program gave signs of life, but has not performed the request after this many seconds.
    #[error("the server did not finish within {0} s")]
    Busy(u64),
    /// The connection failed.
    #[error("the server closed the connection: {0}")]
    Broken(io::Error),
    /// The answer is malformed.
    #[error("the server's answer is malformed: {0}")]
    Answer(#[from] serde_json::Error),
}

impl ControlSocket {
    /// Opens the socket at `path`, in a folder that no other server uses: a leftover of an earlier
    /// server is removed. Only root and the server's own user may connect.
    ///
    /// # Errors
    /// The system's error.
    pub fn start(path: &Path, handler: impl ControlHandler) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
        let handler = Arc::new(handler);
        let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let rung = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listen(&listener, &rung, &handler))?;
        Ok(Self { path: path.to_owned(), bell, thread })
    }

    /// Removes and closes the socket, in this order: a socket that refuses connections is that of a
    /// program that died.
    pub fn shutdown(self) {
        // Another program may have removed the socket.
        let _ = std::fs::remove_file(&self.path);
        // Writing to an eventfd whose value is zero does not fail.
        let _ = rustix::io::write(&*self.bell, &1_u64.to_ne_bytes());
        let _ = self.thread.join();
    }
}

/// Sends a request to the program whose control socket is at `path`; waits for the answer as long
/// as the request may take, but 5 seconds at most without a sign of life.
///
/// # Errors
/// [`AskError`].
pub fn ask<R: ControlRequest>(path: &Path, request: &R) -> Result<Answer, AskError> {
    let limits =
        AnswerLimits { silence: CONTROL_ANSWER_SECONDS, whole: request.patience_seconds() };
    ask_within(path, request, limits)
}

fn ask_within<R: ControlRequest>(
    path: &Path,
    request: &R,
    limits: AnswerLimits,
) -> Result<Answer, AskError> {
    let broken = |error: io::Error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => AskError::Silent(limits.first()),
        _ => AskError::Broken(error),
    };
    let mut line = serde_json::to_string(request)?;
    line.push('\n');
    let patience = Duration::from_secs(limits.first());
    let mut stream = connect(path, patience).map_err(|source| match broken(source) {
        AskError::Broken(source) => AskError::Absent { path: path.to_owned(), source },
        silent => silent,
    })?;
    stream.write_all(line.as_bytes()).map_err(broken)?;
    Ok(serde_json::from_slice(&limits.answer(&stream)?)?)
}

/// Connects; waits no longer than `patience` for a server that accepts no connection or, later,
/// does not read.
fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.cloexec(), None)?;
    socket.set_write_timeout(Some(patience))?;
    socket.connect(&SockAddr::unix(path)?)?;
    Ok(OwnedFd::from(socket).into())
}

/// Reads from a connection until a deadline.
struct Within<'a> {
    stream: &'a UnixStream,
    until: Instant,
}

impl Read for Within<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        (&mut &*self.stream).read(buffer)
    }
}

/// Reads each peer on a separate thread, so that a silent one delays no other.
fn listen<H: ControlHandler>(listener: &UnixListener, bell: &OwnedFd, handler: &Arc<H>) {
    let turn = Arc::<Mutex<()>>::default();
    loop {
        let mut polled = [PollFd::new(listener, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        let _ = poll(&mut polled, None);
        let [asked, rung] = polled.map(|polled| !polled.revents().is_empty());
        if rung {
            return;
        }
        if asked && let Ok((stream, _)) = listener.accept() {
            hear_elsewhere(stream, handler, &turn);
        }
    }
}

fn hear_elsewhere<H: ControlHandler>(stream: UnixStream, handler: &Arc<H>, turn: &Arc<Mutex<()>>) {
    // Each peer's thread has one reference to `turn`, and so has the thread that listens.
    if Arc::strong_count(turn) > CONTROL_PEERS_MAX {
        return tracing::warn!("a request at the control socket was dropped: too many at once");
    }
    let (handler, turn) = (Arc::clone(handler), Arc::clone(turn));
    let hear = move || {
        if let Err(error) = hear(&stream, &*handler, &turn) {
            tracing::warn!(%error, "a request at the control socket failed");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("control".to_owned()).spawn(hear) {
        tracing::warn!(%error, "a request at the control socket was dropped: no thread");
    }
}

/// Answers one peer, line by line; requests of several peers are performed in `turn`.
fn hear<H: ControlHandler>(stream: &UnixStream, handler: &H, turn: &Mutex<()>) -> io::Result<()> {
    let patience = Duration::from_secs(CONTROL_PATIENCE_SECONDS);
    stream.set_write_timeout(Some(patience))?;
    let peer = socket_peercred(stream)?;
    if !peer.uid.is_root() && peer.uid != geteuid() {
        let refused = format!("user {} may not control this program", peer.uid.as_raw());
        tracing::warn!(process = peer.pid.as_raw_nonzero().get(), "{refused}");
        return say(stream, &Answer::Failed(refused));
    }
    let mut lines = BufReader::new(Within { stream, until: Instant::now() });
    loop {
        lines.get_mut().until = Instant::now() + patience;
        let mut line = String::new();
        (&mut lines).take(CONTROL_LINE_BYTES_MAX).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let answer = match serde_json::from_str(&line) {
            Ok(request) => with_pulse(stream, || {
                let take = || turn.lock().unwrap_or_else(PoisonError::into_inner);
                let _turn = H::is_in_turn(&request).then(take);
                handler.perform(request)
            }),
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

    impl ControlHandler for Echo {
        type Request = Request;

        fn perform(&self, request: Request) -> Answer {
            match request {
                Request::Reload => Answer::Failed("line 3: no such folder".to_owned()),
                other => Answer::Done(serde_json::to_value(other).unwrap_or_default()),
            }
        }
    }

    #[test]
    fn requests_are_performed_and_failures_reported() {
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
    fn a_line_that_is_no_request_is_answered_and_a_long_one_is_cut() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let socket = ControlSocket::start(&path, Echo).unwrap();
        for line in ["{\"command\":\"explode\"}\n".to_owned(), "x".repeat(1 << 20) + "\n"] {
            let mut stream = UnixStream::connect(&path).unwrap();
            // A server that has closed the connection does not read the rest.
            let _ = stream.write_all(line.as_bytes());
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            assert!(answer.contains("not understood"), "{answer}");
        }
        socket.shutdown();
    }

    /// A peer takes a socket that refuses it for that of a program that died.
    #[test]
    fn a_socket_that_is_shut_down_refuses_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        for _ in 0..300 {
            let socket = ControlSocket::start(&path, Echo).unwrap();
            std::thread::scope(|scope| {
                let peer = scope.spawn(|| {
                    while UnixStream::connect(&path).is_ok() {}
                    path.exists()
                });
                socket.shutdown();
                assert!(!peer.join().unwrap(), "the socket is gone before it refuses");
            });
        }
    }

    #[test]
    fn a_server_that_does_not_answer_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        // It accepts connections into its backlog, as a stopped process does, until that is full.
        let _stopped = UnixListener::bind(&path).unwrap();
        let second = AnswerLimits { silence: 1, whole: 1 };
        let begun = Instant::now();
        let asked = ask_within(&path, &Request::Status, second);
        assert!(matches!(asked, Err(AskError::Silent(1))), "{asked:?}");
        let mut kept = Vec::new();
        while let Ok(stream) = connect(&path, Duration::from_millis(100)) {
            kept.push(stream);
            assert!(kept.len() < 10_000);
        }
        let asked = ask_within(&path, &Request::Status, second);
        assert!(matches!(asked, Err(AskError::Silent(1))), "{asked:?}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
        assert_eq!(Request::Status.patience_seconds(), 5);
    }

    /// Performs a reload in 3 seconds, and never ends an eviction.
    struct Slow;

    impl ControlHandler for Slow {
        type Request = Request;

        fn is_in_turn(request: &Request) -> bool {
            *request != Request::Cluster
        }

        fn perform(&self, request: Request) -> Answer {
            match request {
                Request::Reload => std::thread::sleep(Duration::from_secs(3)),
                Request::Evict { .. } => std::thread::sleep(Duration::from_secs(6)),
                _ => {}
            }
            Answer::Done(Value::Null)
        }
    }

    #[test]
    fn signs_of_life_prolong_the_wait_for_long_work_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let socket = ControlSocket::start(&path, Slow).unwrap();
        let ask = |request: &Request, silence, whole| {
            let begun = Instant::now();
            let asked = ask_within(&path, request, AnswerLimits { silence, whole });
            (asked, begun.elapsed().as_secs())
        };
        let (asked, _) = ask(&Request::Reload, 2, 60);
        assert!(matches!(asked, Ok(Answer::Done(Value::Null))), "{asked:?}");
        let (asked, took) = ask(&Request::Evict { client: String::new() }, 2, 3);
        assert!(matches!(asked, Err(AskError::Busy(3))) && took < 5, "{asked:?} {took}");
        // The eviction is still under way, and other requests wait for their turn.
        let (asked, _) = ask(&Request::Status, 2, 2);
        assert!(matches!(asked, Err(AskError::Busy(2))), "{asked:?}");
        let (asked, took) = ask(&Request::Cluster, 2, 2);
        assert!(matches!(asked, Ok(Answer::Done(Value::Null))) && took < 2, "{asked:?}");
        let (asked, _) = ask(&Request::Status, 2, 5);
        assert!(matches!(asked, Ok(Answer::Done(Value::Null))), "{asked:?}");
        socket.shutdown();
    }

    /// A request whose work may take a minute is given up as soon as any other.
    #[test]
    fn a_program_without_signs_of_life_is_given_up_whatever_it_was_asked() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let _hung = UnixListener::bind(&path).unwrap();
        let begun = Instant::now();
        let asked = ask_within(&path, &Request::Reload, AnswerLimits { silence: 1, whole: 60 });
        assert!(matches!(asked, Err(AskError::Silent(1))), "{asked:?}");
        // Another one hangs after it has begun its answer.
        let path = folder.path().join("begun.sock");
        let begins = UnixListener::bind(&path).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut peer, _) = begins.accept().unwrap();
                peer.write_all(b"  {").unwrap();
                // It hangs until the other side gives up.
                let _ = peer.read_to_end(&mut Vec::new());
            });
            let asked = ask_within(&path, &Request::Reload, AnswerLimits { silence: 1, whole: 60 });
            assert!(matches!(asked, Err(AskError::Silent(1))), "{asked:?}");
        });
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }

    #[test]
    fn a_silent_peer_delays_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control.sock");
        let socket = ControlSocket::start(&path, Echo).unwrap();
        let mut silent: Vec<_> = (0..5).map(|_| UnixStream::connect(&path).unwrap()).collect();
        let begun = Instant::now();
        assert!(matches!(ask(&path, &Request::Status), Ok(Answer::Done(_))));
        let half = Duration::from_secs(CONTROL_PATIENCE_SECONDS) / 2;
        assert!(begun.elapsed() < half, "{:?}", begun.elapsed());
        // A peer that sends a byte now and then does not occupy the thread forever either.
        let slow = &mut silent[0];
        let ended = (0..20).any(|_| {
            std::thread::sleep(Duration::from_millis(500));
            slow.write_all(b" ").is_err()
        });
        assert!(ended, "the time limit ends the connection");
        socket.shutdown();
    }
}
