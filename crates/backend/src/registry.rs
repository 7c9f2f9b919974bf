//! The backends that an export may name, by scheme: `dir:/srv`, `memory:`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use comity_vfs::Fs;

/// The scheme of a path without a scheme.
pub const DIRECTORY: &str = "dir";

/// The scheme of file systems that are empty at first and end with the process.
pub const MEMORY: &str = "memory";

/// The scheme of directories of a Ceph file system.
pub const CEPH: &str = "ceph";

/// The place of a file system: its scheme names the backend that opens it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Location<'a> {
    /// The name of the backend.
    pub scheme: &'a str,
    /// The rest of the name, which the backend interprets.
    pub place: &'a Path,
}

impl<'a> Location<'a> {
    /// Splits a name. A scheme is made of lower-case letters and digits and ends with a colon; a
    /// path without one is a directory, and a path that starts with `/` never has one.
    #[must_use]
    pub fn parse(name: &'a Path) -> Self {
        let bytes = name.as_os_str().as_bytes();
        let end = bytes.iter().position(|byte| !is_scheme_byte(*byte)).unwrap_or(bytes.len());
        let (scheme, rest) = bytes.split_at(end);
        match (std::str::from_utf8(scheme), rest.strip_prefix(b":")) {
            (Ok(scheme), Some(place)) if !scheme.is_empty() => {
                Self { scheme, place: Path::new(std::ffi::OsStr::from_bytes(place)) }
            }
            _ => Self { scheme: DIRECTORY, place: name },
        }
    }
}

const fn is_scheme_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

/// A request to open a file system.
#[derive(Debug, Clone, Copy)]
pub struct OpenRequest<'a> {
    /// The place of the file system.
    pub location: Location<'a>,
    /// True if file systems mounted below its root are shown, too.
    pub cross_mounts: bool,
}

/// Opens file systems of one scheme; the error is for the operator.
type OpenBackend<'o> = dyn Fn(&OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> + 'o;

/// The known backends, each with the function that opens its file systems.
#[derive(Default)]
pub struct Registry<'o>(Vec<(&'static str, Box<OpenBackend<'o>>)>);

impl<'o> Registry<'o> {
    /// Adds the backend of a scheme, and replaces an earlier one of that scheme.
    #[must_use]
    pub fn with(
        mut self,
        scheme: &'static str,
        open: impl Fn(&OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> + 'o,
    ) -> Self {
        self.0.retain(|(known, _)| *known != scheme);
        self.0.push((scheme, Box::new(open)));
        self
    }

    /// Opens a file system by the backend of its scheme.
    ///
    /// # Errors
    /// A text for the operator: the backend's own error, or that the scheme is unknown.
    pub fn open(&self, request: &OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> {
        let scheme = request.location.scheme;
        let found = self.0.iter().find(|(known, _)| *known == scheme);
        let (_, open) = found.ok_or_else(|| self.unknown(scheme))?;
        open(request)
    }

    fn unknown(&self, scheme: &str) -> String {
        let known: Vec<String> = self.0.iter().map(|(known, _)| format!("{known}:")).collect();
        format!("there is no backend {scheme}:, but there is {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Memory, MemoryOptions};

    fn parse(name: &str) -> (&str, &str) {
        let Location { scheme, place } = Location::parse(Path::new(name));
        (scheme, place.to_str().unwrap())
    }

    #[test]
    fn a_path_without_a_scheme_is_a_directory() {
        for path in ["/srv", "/srv/a:b", "srv", "", ":", "./memory:", "Srv:x", "/memory:"] {
            assert_eq!(parse(path), (DIRECTORY, path));
        }
    }

    #[test]
    fn a_scheme_ends_at_the_first_colon() {
        assert_eq!(parse("dir:/srv"), (DIRECTORY, "/srv"));
        assert_eq!(parse("memory:"), (MEMORY, ""));
        assert_eq!(parse("nfs4://host:2049/srv"), ("nfs4", "//host:2049/srv"));
    }

    fn memory(_: &OpenRequest<'_>) -> Result<Arc<dyn Fs>, String> {
        let memory = Memory::new(MemoryOptions::default()).map_err(|error| error.to_string())?;
        Ok(Arc::new(memory))
    }

    #[test]
    fn a_file_system_is_opened_by_the_backend_of_its_scheme() {
        let refuse = |request: &OpenRequest<'_>| Err(request.location.place.display().to_string());
        let registry = Registry::default().with(DIRECTORY, refuse).with(MEMORY, memory);
        let open = |name: &str| {
            let location = Location::parse(Path::new(name));
            registry.open(&OpenRequest { location, cross_mounts: false }).map(|_| ())
        };
        assert_eq!(open("memory:"), Ok(()));
        assert_eq!(open("/srv"), Err("/srv".to_owned()));
        let error = open("ceph:/x").unwrap_err();
        assert_eq!(error, "there is no backend ceph:, but there is dir:, memory:");
    }

    #[test]
    fn a_scheme_has_one_backend() {
        let refuse = |_: &OpenRequest<'_>| Err("the first".to_owned());
        let registry = Registry::default().with(MEMORY, refuse).with(MEMORY, memory);
        let location = Location::parse(Path::new("memory:"));
        assert!(registry.open(&OpenRequest { location, cross_mounts: false }).is_ok());
    }
}
