use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comity_keys::PublicKey;

use super::key_choice::own_file;

/// The keys of servers that the user has met: a line `HOST:PORT KEY` for each.
pub(crate) struct KnownServers(PathBuf);

impl KnownServers {
    /// Returns the file of this user.
    ///
    /// # Errors
    /// If the user has no home.
    pub(crate) fn of_user() -> Result<Self> {
        Ok(Self(own_file()?.with_file_name("known_servers")))
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// The key of a server, if the user has met it.
    ///
    /// # Errors
    /// If the file cannot be read, or its line is no key.
    pub(crate) fn key(&self, place: &str) -> Result<Option<PublicKey>> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("cannot read {}", self.0.display()))?,
        };
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        let Some((_, key)) = lines.find(|(known, _)| *known == place) else { return Ok(None) };
        let key = key.trim().parse().map_err(|why| anyhow::anyhow!("{why}"));
        key.map(Some).with_context(|| format!("the line of {place} in {}", self.0.display()))
    }

    /// Remembers the key of a server.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn add(&self, place: &str, key: &PublicKey) -> Result<()> {
        let failed = || format!("cannot write {}", self.0.display());
        if let Some(folder) = self.0.parent() {
            fs::create_dir_all(folder).with_context(failed)?;
        }
        let mut options = fs::OpenOptions::new();
        let mut file = options.append(true).create(true).open(&self.0).with_context(failed)?;
        writeln!(file, "{place} {key}").with_context(failed)
    }
}
