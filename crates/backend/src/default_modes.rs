//! The modes of new objects whose maker names none.

use comity_vfs::Mode;

/// Default mode of new files.
pub(crate) const FILE_MODE: Mode = Mode::new(0o644);

/// Default mode of new directories.
pub(crate) const DIRECTORY_MODE: Mode = Mode::new(0o755);
