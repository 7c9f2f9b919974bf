//! ssh-agent, which signs with keys that it does not reveal (draft-ietf-sshm-ssh-agent).

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::agent_error::AgentError;
use crate::algorithm::Algorithm;
use crate::limits::{AGENT_KEYS_MAX, AGENT_MESSAGE_BYTES_MAX, AGENT_PATIENCE};
use crate::public_key::PublicKey;
use crate::signature::{SignError, Signature, Signer};
use crate::ssh_wire::{WireReader, put_string};

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const FAILURE: u8 = 5;

/// A connection to an ssh-agent.
#[derive(Debug, Clone)]
pub struct SshAgent {
    stream: Arc<Mutex<UnixStream>>,
    patience: Duration,
}

impl SshAgent {
    /// Connects to the agent at this socket path, the value of `SSH_AUTH_SOCK`.
    ///
    /// # Errors
    /// No agent listens there.
    pub fn connect(path: &Path) -> Result<Self, AgentError> {
        Self::connect_for(path, AGENT_PATIENCE)
    }

    fn connect_for(path: &Path, patience: Duration) -> Result<Self, AgentError> {
        let refused = |cause| AgentError::Connect { path: path.display().to_string(), cause };
        let stream = UnixStream::connect(path).map_err(refused)?;
        Ok(Self { stream: Arc::new(Mutex::new(stream)), patience })
    }

    /// The keys of supported algorithms that the agent holds, with their comments.
    ///
    /// # Errors
    /// The agent refuses, fails, or takes too long.
    pub fn keys(&self) -> Result<Vec<(AgentKey, String)>, AgentError> {
        let answer = self.ask(&[REQUEST_IDENTITIES])?;
        let mut reader = answered(&answer, IDENTITIES_ANSWER)?;
        let wrong = AgentError::Malformed("a list of keys");
        let count = reader.number().filter(|count| *count as usize <= AGENT_KEYS_MAX);
        let mut keys = Vec::new();
        for _ in 0..count.ok_or(wrong)? {
            let (wire, comment) = (reader.string(), reader.string());
            let (Some(wire), Some(comment)) = (wire, comment) else {
                return Err(AgentError::Malformed("a key and a comment"));
            };
            if let Ok(public) = PublicKey::from_ssh_wire(wire) {
                let comment = String::from_utf8_lossy(comment).into_owned();
                keys.push((self.key(public), comment));
            }
        }
        Ok(keys)
    }

    /// Returns the agent's private key for this public key. Whether the agent holds it is only
    /// known when it is asked to sign.
    #[must_use]
    pub fn key(&self, public: PublicKey) -> AgentKey {
        AgentKey { agent: self.clone(), public }
    }

    fn sign(&self, key: &PublicKey, message: &[u8]) -> Result<Signature, AgentError> {
        let mut request = vec![SIGN_REQUEST];
        put_string(&mut request, &key.to_ssh_wire());
        put_string(&mut request, message);
        request.extend([0; 4]);
        let answer = self.ask(&request)?;
        let mut reader = answered(&answer, SIGN_RESPONSE)?;
        let signature = reader.string().and_then(|wire| signature(wire, key.algorithm()));
        let signature = signature.ok_or(AgentError::Malformed("a signature"))?;
        let fits = key.verify(message, signature.as_bytes());
        if fits { Ok(signature) } else { Err(AgentError::Malformed("a signature by this key")) }
    }

    /// Sends a message and receives the reply.
    fn ask(&self, request: &[u8]) -> Result<Vec<u8>, AgentError> {
        if request.len() > AGENT_MESSAGE_BYTES_MAX {
            return Err(AgentError::Malformed("a shorter message to sign"));
        }
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + self.patience;
        let mut message = Vec::new();
        put_string(&mut message, request);
        stream.set_write_timeout(Some(self.patience))?;
        stream.write_all(&message).map_err(|error| self.failed(error))?;
        let mut length = [0; 4];
        self.fill(&mut stream, &mut length, until)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > AGENT_MESSAGE_BYTES_MAX {
            return Err(AgentError::Malformed("a shorter answer"));
        }
        let mut answer = vec![0; length];
        self.fill(&mut stream, &mut answer, until)?;
        Ok(answer)
    }

    /// Receives bytes until the buffer is full.
    fn fill(
        &self,
        stream: &mut UnixStream,
        mut buffer: &mut [u8],
        until: Instant,
    ) -> Result<(), AgentError> {
        while !buffer.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(AgentError::TimedOut(self.patience));
            }
            stream.set_read_timeout(Some(left))?;
            let count = match stream.read(buffer) {
                Ok(0) => return Err(AgentError::Malformed("an answer")),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                Err(error) => return Err(self.failed(error)),
            };
            buffer = buffer.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    fn failed(&self, error: io::Error) -> AgentError {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                AgentError::TimedOut(self.patience)
            }
            _ => AgentError::Io(error),
        }
    }
}

/// Checks the type of a reply; returns its content.
fn answered(answer: &[u8], wanted: u8) -> Result<WireReader<'_>, AgentError> {
    let mut reader = WireReader::new(answer);
    match reader.byte() {
        Some(found) if found == wanted => Ok(reader),
        Some(FAILURE) => Err(AgentError::Refused),
        _ => Err(AgentError::Malformed("an answer to the request")),
    }
}

/// Reads a signature (RFC 8709, section 6; RFC 5656, section 3.1.2).
fn signature(wire: &[u8], algorithm: Algorithm) -> Option<Signature> {
    let mut reader = WireReader::new(wire);
    if reader.string()? != algorithm.openssh_name().as_bytes() {
        return None;
    }
    let bytes = reader.string()?;
    match algorithm {
        Algorithm::Ed25519 => Signature::from_bytes(bytes),
        Algorithm::P256 => {
            let mut numbers = WireReader::new(bytes);
            let (r, s) = (numbers.number_of_32_bytes()?, numbers.number_of_32_bytes()?);
            Signature::from_bytes(&[*r, *s].concat())
        }
    }
}

/// A key that an agent holds.
#[derive(Debug, Clone)]
pub struct AgentKey {
    agent: SshAgent,
    public: PublicKey,
}

impl Signer for AgentKey {
    fn public_key(&self) -> &PublicKey {
        &self.public
    }

    fn sign(&self, message: &[u8]) -> Result<Signature, SignError> {
        Ok(self.agent.sign(&self.public, message)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_call_to_a_silent_agent_times_out() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let _listener = UnixListener::bind(&socket).unwrap();
        let agent = SshAgent::connect_for(&socket, Duration::from_millis(50)).unwrap();
        assert!(matches!(agent.keys(), Err(AgentError::TimedOut(_))));
    }

    #[test]
    fn messages_and_lists_beyond_the_limits_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let listener = UnixListener::bind(&socket).unwrap();
        let agent = SshAgent::connect(&socket).unwrap();
        let request = vec![0; AGENT_MESSAGE_BYTES_MAX + 1];
        assert!(matches!(
            agent.ask(&request),
            Err(AgentError::Malformed("a shorter message to sign"))
        ));
        let (mut stream, _) = listener.accept().unwrap();
        let too_many = (AGENT_KEYS_MAX as u32 + 1).to_be_bytes();
        stream.write_all(&[&[0, 0, 0, 5, IDENTITIES_ANSWER][..], &too_many].concat()).unwrap();
        assert!(matches!(agent.keys(), Err(AgentError::Malformed("a list of keys"))));
        let too_long = (AGENT_MESSAGE_BYTES_MAX as u32 + 1).to_be_bytes();
        stream.write_all(&too_long).unwrap();
        assert!(matches!(agent.keys(), Err(AgentError::Malformed("a shorter answer"))));
    }
}
