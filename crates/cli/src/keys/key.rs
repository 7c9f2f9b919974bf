//! `comity key`: makes, shows and copies keys.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use comity_keys::{PrivateKey, PublicKey, Signer};
use serde_json::json;

use super::key_choice::{own_file, private_key, public_key};
use crate::key_arguments::{Algorithm, Key, KeyChoice, KeyImport, KeyNew, KeyShow};
use crate::stdout::say;

/// Performs a command of `comity key`.
///
/// # Errors
/// If a file cannot be read or written, or is no key.
pub(crate) fn perform(command: Key) -> Result<ExitCode> {
    match command {
        Key::New(typed) => new(typed),
        Key::Show(typed) => show(&typed),
        Key::Import(typed) => import(typed),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn new(KeyNew { file, algorithm }: KeyNew) -> Result<()> {
    let key = PrivateKey::generate(match algorithm {
        Algorithm::Ed25519 => comity_keys::Algorithm::Ed25519,
        Algorithm::P256 => comity_keys::Algorithm::P256,
    })?;
    keep(&key, file)
}

fn import(KeyImport { from, file }: KeyImport) -> Result<()> {
    keep(&private_key(&from)?, file)
}

fn show(KeyShow { file, json }: &KeyShow) -> Result<()> {
    let key = match file {
        Some(file) => public_key(&file.to_string_lossy())?,
        None => *KeyChoice { key: None }.signer()?.public_key(),
    };
    if json.json {
        say(json!({
            "key": key.to_string(),
            "keynote": key.to_keynote(),
            "openssh": key.to_openssh(""),
            "fingerprint": key.fingerprint(),
        }));
    } else {
        say(text(&key));
    }
    Ok(())
}

fn text(key: &PublicKey) -> String {
    format!(
        "key          {key}\nkeynote      {}\nopenssh      {}\nfingerprint  {}",
        key.to_keynote(),
        key.to_openssh(""),
        key.fingerprint()
    )
}

/// Writes a private key to a new file and prints its public key.
fn keep(key: &PrivateKey, file: Option<PathBuf>) -> Result<()> {
    let file = file.map_or_else(own_file, Ok)?;
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    write(&file, key.to_pem()?.as_bytes())?;
    eprintln!("the private key is in {}", file.display());
    say(key.public_key());
    Ok(())
}

fn write(file: &Path, text: &[u8]) -> Result<()> {
    let mut options = OpenOptions::new();
    let mut made = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .with_context(|| format!("cannot make {}; nothing is overwritten", file.display()))?;
    made.write_all(text)?;
    made.sync_all()?;
    Ok(())
}
