//! Tests with ssh-agent, if it is installed, and with agents that answer wrongly.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod wire;

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

use comity_keys::{AgentError, Algorithm, PrivateKey, PublicKey, SignError, Signer, SshAgent};
use wire::{number, strings};

/// An ssh-agent that ends with the test.
struct RealAgent {
    child: Child,
    socket: PathBuf,
}

impl RealAgent {
    /// Starts an agent; `None` if it is not installed.
    fn start(folder: &Path) -> Option<Self> {
        let socket = folder.join("agent");
        let command = Command::new("ssh-agent")
            .arg("-D")
            .arg("-a")
            .arg(&socket)
            .stdout(Stdio::piped())
            .spawn();
        let mut child = match command {
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            child => child.unwrap(),
        };
        // The agent prints the path of its socket as soon as it listens on it.
        let mut line = String::new();
        let length = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(length > 0, "ssh-agent is installed but does not start");
        Some(Self { child, socket })
    }

    fn add(&self, folder: &Path, name: &str, text: &str) {
        let file = folder.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        let mut add = Command::new("ssh-add");
        add.arg(&file).env("SSH_AUTH_SOCK", &self.socket).stderr(Stdio::null());
        assert!(add.status().unwrap().success());
    }
}

impl Drop for RealAgent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_real_agent_lists_its_keys_and_signs_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(agent) = RealAgent::start(folder.path()) else {
        println!("skipped: ssh-agent is not installed");
        return;
    };
    agent.add(folder.path(), "ed25519", include_str!("files/ssh_ed25519"));
    agent.add(folder.path(), "p256", include_str!("files/ssh_p256"));
    let ours = SshAgent::connect(&agent.socket).unwrap();
    let keys = ours.keys().unwrap();
    let comments: Vec<&str> = keys.iter().map(|(_, comment)| comment.as_str()).collect();
    assert_eq!(comments, ["alice@example.org", "bob at work"]);
    for (key, _) in &keys {
        // Numbers with a leading zero are written shorter, so that several messages are needed.
        for message in 0..300_u32 {
            let signature = key.sign(&message.to_be_bytes()).unwrap();
            assert!(key.public_key().verify(&message.to_be_bytes(), signature.as_bytes()));
        }
    }
    let stranger = PublicKey::from_text(include_str!("files/ssh_p256_encrypted.pub")).unwrap();
    let error = ours.key(stranger).sign(b"m").unwrap_err();
    assert!(matches!(error, SignError::Agent(AgentError::Refused)), "{error}");
}

/// Starts an agent that answers one request with these bytes.
fn answering(folder: &Path, answer: Vec<u8>) -> (SshAgent, JoinHandle<()>) {
    let socket = folder.join("agent");
    let _ = fs::remove_file(&socket);
    let listener = UnixListener::bind(&socket).unwrap();
    let ours = SshAgent::connect(&socket).unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        stream.read_exact(&mut length).unwrap();
        let mut request = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut request).unwrap();
        stream.write_all(&answer).unwrap();
    });
    (ours, thread)
}

#[test]
fn wrong_answers_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let answers: [&[u8]; 8] = [
        b"",
        b"\0\0\0\x05\x0c",
        b"\0\0\0\x01\x05",
        b"\0\0\0\0",
        b"\xff\xff\xff\xff\x0c",
        b"\0\0\0\x05\x0c\xff\xff\xff\xff",
        b"\0\0\0\x05\x0c\0\0\0\x01",
        b"\0\0\0\x0d\x0c\0\0\0\x01\xff\xff\xff\xff\0\0\0\0",
    ];
    for answer in answers {
        let (agent, thread) = answering(folder.path(), answer.to_vec());
        assert!(agent.keys().is_err(), "{answer:x?}");
        thread.join().unwrap();
    }
    let (agent, thread) = answering(folder.path(), b"\0\0\0\x01\x05".to_vec());
    assert!(matches!(agent.keys(), Err(AgentError::Refused)));
    thread.join().unwrap();
}

/// The answer that holds a signature.
fn signed(algorithm: Algorithm, signature: &[u8]) -> Vec<u8> {
    let wire = strings(&[algorithm.openssh_name().as_bytes(), signature]);
    let content = [&[14], &strings(&[&wire])[..]].concat();
    strings(&[&content])
}

#[test]
fn numbers_of_a_signature_are_filled_up_to_their_length() {
    let folder = tempfile::tempdir().unwrap();
    let key = PrivateKey::generate(Algorithm::P256).unwrap();
    // One signature in 128 has a number with a leading zero.
    let is_short = |signature: &[u8; 64]| signature[0] == 0 || signature[32] == 0;
    let signatures = (0..20_000_u32).map(|_| *key.sign(b"m").unwrap().as_bytes());
    let short = signatures.take(20_000).find(is_short).unwrap();
    let both = [number(&short[..32]), number(&short[32..])].concat();
    let (agent, thread) = answering(folder.path(), signed(Algorithm::P256, &both));
    let signature = agent.key(*key.public_key()).sign(b"m").unwrap();
    assert_eq!(*signature.as_bytes(), short);
    thread.join().unwrap();
}

#[test]
fn broken_signatures_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let [ed25519, p256] = Algorithm::ALL.map(|algorithm| PrivateKey::generate(algorithm).unwrap());
    let good = *ed25519.sign(b"m").unwrap().as_bytes();
    let long = strings(&[&[1; 34], &[1; 32]]);
    let one = strings(&[&[1; 32]]);
    for (key, algorithm, bytes) in [
        (&ed25519, Algorithm::Ed25519, &good[..63]),
        (&ed25519, Algorithm::P256, &good[..]),
        (&p256, Algorithm::Ed25519, &good[..]),
        (&p256, Algorithm::P256, &long[..]),
        (&p256, Algorithm::P256, &one[..]),
        (&p256, Algorithm::P256, &[][..]),
    ] {
        let (agent, thread) = answering(folder.path(), signed(algorithm, bytes));
        let error = agent.key(*key.public_key()).sign(b"m").unwrap_err();
        assert!(error.to_string().ends_with("expected a signature"), "{error}");
        thread.join().unwrap();
    }
}

#[test]
fn keys_of_other_algorithms_are_left_out_of_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let ours = PublicKey::from_text(include_str!("files/ssh_ed25519.pub")).unwrap();
    let point = strings(&[b"ssh-ed25519", ours.as_bytes()]);
    let rsa = strings(&[b"ssh-rsa", &[1, 0, 1], &[7; 256]]);
    let list = strings(&[&rsa, b"rsa", &point, b"\xffours", b"", b"nothing"]);
    let content = [&[12, 0, 0, 0, 3], &list[..]].concat();
    let (agent, thread) = answering(folder.path(), strings(&[&content]));
    let keys = agent.keys().unwrap();
    assert_eq!(keys.len(), 1);
    assert_eq!(*keys[0].0.public_key(), ours);
    assert_eq!(keys[0].1, "\u{fffd}ours");
    thread.join().unwrap();
}

#[test]
fn a_signature_by_another_key_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let key = PublicKey::from_text(include_str!("files/ssh_ed25519.pub")).unwrap();
    let (agent, thread) = answering(folder.path(), signed(Algorithm::Ed25519, &[7; 64]));
    let error = agent.key(key).sign(b"m").unwrap_err();
    assert!(error.to_string().contains("a signature by this key"), "{error}");
    thread.join().unwrap();
}

#[test]
fn a_missing_agent_is_named_with_its_path() {
    let error = SshAgent::connect(Path::new("/nowhere/agent")).unwrap_err().to_string();
    assert!(error.starts_with("no agent answers at /nowhere/agent: "), "{error}");
}
