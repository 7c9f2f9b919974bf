//! The files of the checkout that the rules check.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use walkdir::{DirEntry, WalkDir};

/// Folders without files that are written by hand.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "snapshots"];

/// Endings of the files that are read as text.
const TEXT: &[&str] =
    &["rs", "toml", "lock", "md", "sh", "py", "c", "yml", "service", "exports", "txt"];

/// All files that the rules may check.
pub(super) struct Tree {
    /// Text files, Rust sources among them, by path.
    pub(super) texts: Vec<Text>,
    /// Rust sources, parsed.
    pub(super) sources: Vec<Source>,
}

/// A text file.
pub(super) struct Text {
    /// The path below the top folder, with `/`.
    pub(super) path: String,
    /// The content.
    pub(super) text: String,
}

/// A parsed Rust source.
pub(super) struct Source {
    /// The path below the top folder, with `/`.
    pub(super) path: String,
    /// The content.
    pub(super) text: String,
    /// The items.
    pub(super) syntax: syn::File,
    /// True if it is compiled for tests only.
    pub(super) is_test: bool,
}

impl Tree {
    /// Reads the checkout.
    ///
    /// # Errors
    /// If a file cannot be read or parsed.
    pub(super) fn load(root: &Path) -> Result<Self> {
        let mut tree = Self { texts: Vec::new(), sources: Vec::new() };
        let walk = WalkDir::new(root).sort_by_file_name().into_iter();
        for entry in walk.filter_entry(|entry| !is_skipped(entry)) {
            let entry = entry?;
            if entry.file_type().is_file() && is_text(entry.path()) {
                tree.add(root, entry.path())?;
            }
        }
        Ok(tree)
    }

    fn add(&mut self, root: &Path, file: &Path) -> Result<()> {
        let path = file.strip_prefix(root)?.to_string_lossy().into_owned();
        let text = fs::read_to_string(file).with_context(|| format!("read {path}"))?;
        if path.ends_with(".rs") {
            self.sources.push(Source::parse(&path, &text)?);
        }
        self.texts.push(Text { path, text });
        Ok(())
    }
}

impl Source {
    /// Parses a source; it counts as a test if it is in a folder of tests.
    ///
    /// # Errors
    /// If the text is not valid Rust.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self> {
        let syntax = syn::parse_file(text)
            .map_err(|error| anyhow::anyhow!("{path}:{}: {error}", error.span().start().line))?;
        let is_test = ["tests/", "benches/", "examples/", "fuzz/"]
            .iter()
            .any(|folder| path.starts_with(folder) || path.contains(&format!("/{folder}")));
        Ok(Self { path: path.into(), text: text.into(), syntax, is_test })
    }
}

fn is_skipped(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.file_type().is_dir() && SKIPPED.contains(&name.as_ref())
}

/// Returns whether the rules read the file: by its ending, or because it is `run` of `.ci`.
fn is_text(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| TEXT.contains(&ending)) || path.ends_with(".ci/run")
}
