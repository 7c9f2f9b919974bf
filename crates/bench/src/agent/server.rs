use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use comity_rpc::{Answered, Dispatcher, OpenGate, RecordLimits, Scan, next_record};
use comity_xdr::Encoder;

use super::program::Flush;

/// The default port of the agent.
pub const PORT: u16 = 20491;

/// Most bytes of a call: a call has 40, and a credential.
const CALL_BYTES_MAX: usize = 1024;
/// Longest a client may be silent, in seconds, as clients are served one at a time.
const SILENCE_SECONDS_MAX: u64 = 10;

/// An agent with its listening socket.
pub struct Agent {
    listener: TcpListener,
    /// The addresses of the clients that may call.
    allowed: Vec<IpAddr>,
    dispatcher: Dispatcher<(), OpenGate>,
}

impl Agent {
    /// Opens the listening socket. Only clients at the addresses `allowed` may run the `commands`,
    /// or drop the kernel's caches if there are none.
    ///
    /// # Errors
    /// No client is allowed, or the address is in use.
    pub fn listen(at: SocketAddr, allowed: Vec<IpAddr>, commands: Vec<String>) -> Result<Self> {
        ensure!(!allowed.is_empty(), "nobody may ask: give clients with --allow ADDR");
        let listener = TcpListener::bind(at).with_context(|| {
            format!("cannot listen at {at}: give another address with --listen")
        })?;
        let dispatcher = Dispatcher::new(vec![std::sync::Arc::new(Flush { commands })], OpenGate);
        Ok(Self { listener, allowed, dispatcher })
    }

    /// The address of the listening socket.
    ///
    /// # Errors
    /// The socket has failed.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Serves clients, one after the other, without end; `tell` gets a line for each.
    ///
    /// # Errors
    /// The socket failed.
    pub fn serve(&self, tell: impl Fn(&str)) -> Result<()> {
        loop {
            self.serve_one(&tell)?;
        }
    }

    /// Serves the next client until it closes the connection.
    ///
    /// # Errors
    /// The socket failed; a client's failure is only passed to `tell`.
    pub fn serve_one(&self, tell: &impl Fn(&str)) -> Result<()> {
        let (stream, peer) = self.listener.accept().context("accept")?;
        let who = peer.ip().to_canonical();
        if !self.allowed.contains(&who) {
            tell(&format!("{who} is refused: it is not among those of --allow"));
            return Ok(());
        }
        match self.converse(stream, who) {
            Ok(calls) => tell(&format!("{who}: {calls} calls answered")),
            Err(error) => tell(&format!("{who}: {error:#}")),
        }
        Ok(())
    }

    /// Answers a client's calls; returns their number.
    fn converse(&self, mut stream: TcpStream, who: IpAddr) -> Result<u32> {
        stream.set_read_timeout(Some(Duration::from_secs(SILENCE_SECONDS_MAX)))?;
        let limits = RecordLimits { bytes_max: CALL_BYTES_MAX };
        let (mut inbox, mut calls) = (Vec::new(), 0);
        loop {
            while let Scan::Record { body, end } = next_record(&mut inbox, &limits)? {
                let mut reply = Encoder::new();
                let record = inbox.get(body).unwrap_or_default();
                if let Answered::Later(late) =
                    self.dispatcher.answer(record, who, &(), &mut reply)?
                {
                    drop(late);
                    bail!("a call that nobody can answer at once");
                }
                stream.write_all(reply.bytes())?;
                inbox.drain(..end);
                calls += 1;
            }
            let mut part = [0; CALL_BYTES_MAX];
            match stream.read(&mut part)? {
                0 => return Ok(calls),
                count => inbox.extend_from_slice(part.get(..count).unwrap_or_default()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;
    use crate::agent::flush;

    fn agent(allowed: &str, commands: &[&str]) -> Agent {
        let commands = commands.iter().map(|&command| command.to_owned()).collect();
        let at = "127.0.0.1:0".parse().unwrap();
        Agent::listen(at, vec![allowed.parse().unwrap()], commands).unwrap()
    }

    fn asked(agent: &Agent) -> (Result<()>, String) {
        let told = Mutex::new(String::new());
        let address = agent.address().unwrap();
        let result = thread::scope(|scope| {
            let asking = scope.spawn(move || flush(address));
            agent.serve_one(&|line: &str| told.lock().unwrap().push_str(line)).unwrap();
            asking.join().unwrap()
        });
        (result, told.into_inner().unwrap())
    }

    #[test]
    fn a_client_that_is_allowed_has_the_commands_run() {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("flushed");
        let (result, told) = asked(&agent("127.0.0.1", &[&format!("touch {}", mark.display())]));
        result.unwrap();
        assert!(mark.exists());
        assert_eq!(told, "127.0.0.1: 1 calls answered");
    }

    #[test]
    fn a_command_that_fails_fails_the_client() {
        let (result, _) = asked(&agent("127.0.0.1", &["echo no disk >&2; false"]));
        let error = format!("{:#}", result.unwrap_err());
        assert!(error.contains("no disk"), "{error}");
    }

    #[test]
    fn others_are_refused() {
        let (result, told) = asked(&agent("192.0.2.1", &["true"]));
        assert!(result.is_err());
        assert!(told.contains("127.0.0.1 is refused"), "{told}");
        assert!(Agent::listen("127.0.0.1:0".parse().unwrap(), Vec::new(), Vec::new()).is_err());
    }
}
