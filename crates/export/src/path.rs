use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Returns an export's path in normal form: absolute, without `.`, `..`, and doubled or trailing
/// slashes.
///
/// # Errors
/// The mistake in words.
pub(crate) fn normal(path: &OsStr) -> Result<PathBuf, String> {
    const PATH_BYTES_MAX: usize = 1024;
    let wrong = |what: &str| Err(format!("path {path:?} {what}"));
    match Path::new(path) {
        _ if path.as_bytes().contains(&0) => wrong("holds a zero byte"),
        _ if path.len() > PATH_BYTES_MAX => {
            wrong("is longer than MOUNT can name (RFC 1813, 5.1.2)")
        }
        path if !path.is_absolute() => wrong("is not absolute: expected /..."),
        path if path.components().any(|part| part == Component::ParentDir) => {
            wrong("goes up by \"..\": write where it leads")
        }
        path => Ok(path.components().collect()),
    }
}

/// A path in the syntax of exports(5): special characters are escaped.
pub(crate) struct Escaped<'a>(pub(crate) &'a Path);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_os_str().as_bytes().iter().try_for_each(|&byte| match byte {
            b'"' | b'#' | b'\\' | b'(' | b')' | b',' => write!(f, "\\{byte:03o}"),
            0x21..=0x7e => write!(f, "{}", char::from(byte)),
            _ => write!(f, "\\{byte:03o}"),
        })
    }
}
