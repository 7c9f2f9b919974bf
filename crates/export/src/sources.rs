use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_credential::KeyId;
use comity_vfs::AsServer;

use crate::config;
use crate::diagnostic::Diagnostics;
use crate::export_spec::Escaped;
use crate::file_text::text_of;
use crate::limits::FILES_MAX;
use crate::{Configuration, Diagnostic, FindMoved, Location, Resolver, SystemResolver, exports};

/// A source of configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file of exports(5).
    Exports(PathBuf),
    /// The files `*.exports` of a directory, in the order of their names, except those that begin
    /// with a dot. The directory may be missing.
    Directory(PathBuf),
    /// A TOML file.
    Config(PathBuf),
    /// Text of exports(5) that is not in a file.
    Text {
        /// The name that diagnostics use.
        name: String,
        /// The text.
        text: Vec<u8>,
    },
}

impl Source {
    /// Makes a source with one export of `path` to `clients`, in the syntax of exports(5):
    /// `127.0.0.1(rw) ::1(rw)`.
    #[must_use]
    pub fn export(name: &str, path: &Path, clients: &str) -> Self {
        let text = format!("{} {clients}\n", Escaped(path)).into_bytes();
        Self::Text { name: name.into(), text }
    }
}

/// The sources of a configuration in the order in which they are read, and the services that
/// resolve names.
#[derive(Clone)]
pub struct Sources {
    /// The sources, in the order in which they are read.
    pub list: Vec<Source>,
    /// The file of netgroup(5).
    pub netgroups: PathBuf,
    /// The resolver of host names.
    pub resolver: Arc<dyn Resolver>,
    /// Reads the keys of certificate authorities.
    pub authorities: Arc<ReadAuthorities>,
    /// Tells where exports were moved.
    pub moved: Arc<FindMoved>,
}

/// Reads a file with the certificates of authorities; returns the names of their keys, or the
/// error.
pub type ReadAuthorities = dyn Fn(&Path) -> Result<Vec<KeyId>, String> + Send + Sync;

impl Sources {
    /// Makes these sources with the system's resolver and `/etc/netgroup`.
    #[must_use]
    pub fn new(list: Vec<Source>) -> Self {
        let nobody = |_: &Path| Err("certificates cannot be read here".to_owned());
        Self {
            list,
            netgroups: "/etc/netgroup".into(),
            resolver: Arc::new(SystemResolver),
            authorities: Arc::new(nobody),
            moved: Arc::new(|_| None),
        }
    }

    /// Reads the text of all sources. [`crate::load()`] reports the mistakes in it, too.
    ///
    /// # Errors
    /// All diagnostics, if one of them is an error.
    pub fn read(&self) -> Result<Configuration, Vec<Diagnostic>> {
        let (configuration, diagnostics) = self.declarations();
        if diagnostics.has_errors() { Err(diagnostics.sorted()) } else { Ok(configuration) }
    }

    pub(crate) fn declarations(&self) -> (Configuration, Diagnostics) {
        let (mut configuration, mut diagnostics) =
            (Configuration::default(), Diagnostics::default());
        for source in &self.list {
            configuration.add(source, &mut diagnostics);
        }
        (configuration, diagnostics)
    }
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("list", &self.list).finish_non_exhaustive()
    }
}

impl Configuration {
    fn add(&mut self, source: &Source, diagnostics: &mut Diagnostics) {
        match source {
            Source::Exports(path) => self.add_exports(path, diagnostics),
            Source::Directory(path) => {
                files(path, diagnostics)
                    .iter()
                    .for_each(|file| self.add_exports(file, diagnostics));
            }
            Source::Text { name, text } => {
                self.exports.extend(exports::parse(&name.as_str().into(), text, diagnostics));
            }
            Source::Config(path) => {
                if let Some((name, text)) = text_of(path, diagnostics) {
                    let read = config::parse(&name, &text, diagnostics);
                    self.server = read.server;
                    self.exports.extend(read.exports);
                    self.placements.extend(read.placements);
                    self.peers.extend(read.peers);
                }
            }
        }
    }

    fn add_exports(&mut self, path: &Path, diagnostics: &mut Diagnostics) {
        if let Some((name, text)) = text_of(path, diagnostics) {
            self.exports.extend(exports::parse(&name, &text, diagnostics));
        }
    }
}

fn files(directory: &Path, diagnostics: &mut Diagnostics) -> Vec<PathBuf> {
    let place = Location::file(&directory.display().to_string());
    let listed = AsServer::here().map_err(|_| ErrorKind::PermissionDenied.into());
    let entries = match listed.and_then(|_server| std::fs::read_dir(directory)) {
        Ok(entries) => entries,
        Err(error) => {
            if error.kind() != ErrorKind::NotFound {
                diagnostics.error(&place, format!("cannot be read: {error}"));
            }
            return Vec::new();
        }
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_exports(path)).collect();
    files.sort();
    if files.len() > FILES_MAX {
        diagnostics.error(&place, format!("more than {FILES_MAX} files"));
        files.truncate(FILES_MAX);
    }
    files
}

fn is_exports(path: &Path) -> bool {
    let hidden = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"."));
    path.extension() == Some(OsStr::new("exports")) && !hidden
}
