//! The private key that a command uses.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use comity_keys::{KeyError, PrivateKey, PublicKey, Signer, SshAgent};

use crate::key_arguments::KeyChoice;

/// The value of `--key` that stands for the keys of ssh-agent.
const AGENT: &str = "agent";

/// Largest file of a key in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl KeyChoice {
    /// The key to sign with.
    ///
    /// # Errors
    /// If there is none, or it cannot be read; the message says what to do.
    pub(crate) fn signer(&self) -> Result<Box<dyn Signer + Send + Sync>> {
        match &self.key {
            Some(place) if place.as_os_str() == AGENT => agent_key(),
            Some(file) => Ok(Box::new(private_key(file)?)),
            None => match usual_files().into_iter().find(|file| file.exists()) {
                Some(file) => Ok(Box::new(private_key(&file)?)),
                None => bail!(
                    "there is no key: make one with `comity key new`, or name one with --key \
                     FILE or --key agent"
                ),
            },
        }
    }
}

/// The first key of ssh-agent that can be used.
fn agent_key() -> Result<Box<dyn Signer + Send + Sync>> {
    let socket = std::env::var_os("SSH_AUTH_SOCK")
        .context("no ssh-agent runs: SSH_AUTH_SOCK is not set; name a file with --key FILE")?;
    let agent = SshAgent::connect(Path::new(&socket))?;
    let (key, _) = agent.keys()?.into_iter().next().context(
        "ssh-agent has no Ed25519 or ECDSA P-256 key: add one with `ssh-add`, or name a file with \
         --key FILE",
    )?;
    Ok(Box::new(key))
}

/// Reads a private key; asks for its passphrase if it has one and there is a terminal.
pub(crate) fn private_key(file: &Path) -> Result<PrivateKey> {
    let text = read(file)?;
    let failed = || format!("{} cannot be used", file.display());
    match PrivateKey::from_text(&text, None) {
        Err(KeyError::Encrypted) => {
            let passphrase = passphrase(file)?;
            PrivateKey::from_text(&text, Some(&passphrase)).with_context(failed)
        }
        key => key.with_context(failed),
    }
}

/// The public key that a user named: a file, or the key itself.
pub(crate) fn public_key(named: &str) -> Result<PublicKey> {
    if let Ok(key) = named.parse() {
        return Ok(key);
    }
    if named.starts_with("ssh-") || named.starts_with("ecdsa-") {
        return Ok(PublicKey::from_openssh(named)?.0);
    }
    let text = read(Path::new(named))?;
    match PublicKey::from_text(&text) {
        Err(KeyError::Private) => Ok(*private_key(Path::new(named))?.public_key()),
        key => key.with_context(|| format!("{named} cannot be used")),
    }
}

/// The file of a user's own key.
pub(crate) fn own_file() -> Result<PathBuf> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let configuration = folder("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let home = || folder("HOME").map(|home| home.join(".config"));
    let folder = configuration.or_else(home).context("HOME is not set: name a file")?;
    Ok(folder.join("comity/key.pem"))
}

/// The files that are tried if the user names no key.
fn usual_files() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let ssh = home.map(|home| home.join(".ssh/id_ed25519"));
    own_file().ok().into_iter().chain(ssh).collect()
}

fn read(file: &Path) -> Result<String> {
    let failed = || format!("cannot read {}", file.display());
    let length = fs::metadata(file).with_context(failed)?.len();
    ensure!(length <= FILE_BYTES_MAX, "{} is too large for a key", file.display());
    fs::read_to_string(file).with_context(failed)
}

fn passphrase(file: &Path) -> Result<String> {
    ensure!(
        std::io::stdin().is_terminal(),
        "{} has a passphrase, and there is no terminal to ask for it: use --key agent",
        file.display()
    );
    eprint!("Passphrase of {}: ", file.display());
    std::io::stderr().flush()?;
    let text = without_echo(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    })?;
    eprintln!();
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads from the terminal with its echo off.
fn without_echo(read: impl FnOnce() -> std::io::Result<String>) -> Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let input = std::io::stdin();
    let before = tcgetattr(&input)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &silent)?;
    let line = read();
    tcsetattr(&input, OptionalActions::Flush, &before)?;
    Ok(line?)
}
