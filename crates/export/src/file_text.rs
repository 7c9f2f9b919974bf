use std::path::Path;
use std::sync::Arc;

use comity_vfs::AsServer;

use crate::Location;
use crate::diagnostic::Diagnostics;
use crate::limits::FILE_BYTES_MAX;

/// Reads a whole file; returns the name that diagnostics use and the text.
pub(crate) fn text_of(path: &Path, diagnostics: &mut Diagnostics) -> Option<(Arc<str>, Vec<u8>)> {
    let name: Arc<str> = path.display().to_string().into();
    match whole(path) {
        Ok(text) => Some((name, text)),
        Err(reason) => {
            diagnostics.error(&Location::file(&name), format!("cannot be read: {reason}"));
            None
        }
    }
}

/// Reads a regular file only: a configuration is read more than once, when a pipe would be empty,
/// and a device has no end.
fn whole(path: &Path) -> Result<Vec<u8>, String> {
    let _server = AsServer::here().map_err(|status| status.to_string())?;
    match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err("it is no file, and it must be there again at a reload".into())
        }
        Ok(found) if found.len() > FILE_BYTES_MAX => Err(format!("over {FILE_BYTES_MAX} bytes")),
        _ => std::fs::read(path).map_err(|error| error.to_string()),
    }
}
