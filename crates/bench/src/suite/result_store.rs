use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

use super::{SCHEMA, SuiteOutcome};

/// The name of the result in its directory.
pub const RESULT_FILE: &str = "result.json";

/// A result directory. Its `result.json` is always complete: it is replaced, never changed.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
}

/// The fields that identify a result before it is read in full.
#[derive(Deserialize)]
struct Head {
    schema: u32,
}

impl Store {
    /// Makes a directory for a new result.
    ///
    /// # Errors
    /// It cannot be made, or already contains a result.
    pub fn create(directory: &Path) -> Result<Self> {
        let place = directory.display();
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make {place}: choose another with --output"))?;
        ensure!(
            !directory.join(RESULT_FILE).exists(),
            "{place} holds a result already: go on with --resume, or choose another with --output"
        );
        Ok(Self { directory: directory.to_path_buf() })
    }

    /// The directory of an existing result.
    #[must_use]
    pub fn at(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf() }
    }

    /// Returns its path.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the result; `path` may be the directory or the file.
    ///
    /// # Errors
    /// There is no result, it is of a later version, or it is damaged.
    pub fn read(path: &Path) -> Result<SuiteOutcome> {
        let file = if path.is_dir() { path.join(RESULT_FILE) } else { path.to_path_buf() };
        let place = file.display().to_string();
        let text = fs::read(&file).with_context(|| {
            format!("there is no result in {place}: `comity bench run` leaves one in --output")
        })?;
        let head: Head = serde_json::from_slice(&text)
            .with_context(|| format!("{place} is no result of comity bench"))?;
        if head.schema > SCHEMA {
            bail!("{place} was written by a later comity (schema {}): use that one", head.schema);
        }
        let reader = BufReader::new(text.as_slice());
        serde_json::from_reader(reader).with_context(|| format!("{place} is damaged"))
    }

    /// Replaces the result.
    ///
    /// # Errors
    /// The file cannot be written; the old result stays.
    pub fn write(&self, outcome: &SuiteOutcome) -> Result<()> {
        let place = self.directory.join(RESULT_FILE);
        let failed = || format!("cannot write {}", place.display());
        let new = self.directory.join(".result.json.new");
        let mut text = serde_json::to_vec(outcome)?;
        text.push(b'\n');
        let mut file = File::create(&new).with_context(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).with_context(failed)?;
        fs::rename(&new, &place).with_context(failed)
    }
}
