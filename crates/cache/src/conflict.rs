//! Data that could not be written to its file: docs/formats.md, "Disk cache".

use std::io;

use crate::dirty::Extents;
use crate::key::FileName;
use crate::medium::Medium;

/// The folder of all such data.
pub(crate) const CONFLICTS: &str = "conflicts";

/// Keeps the data of a file; returns the folder that it is in.
///
/// # Errors
/// The disk's: not all of it is kept.
pub(crate) fn keep(
    medium: &dyn Medium,
    file: &FileName,
    extents: &Extents,
    now: u64,
) -> io::Result<String> {
    let bytes = file.handle.bytes().iter();
    let handle: String = bytes.map(|byte| format!("{byte:02x}")).collect();
    let taken = medium.list(CONFLICTS)?.len();
    let folder = format!("{CONFLICTS}/{now}-{taken}");
    let text = format!("volume {:x}\nhandle {handle}\n", file.volume);
    put(medium, &format!("{folder}/handle"), text.as_bytes())?;
    for (offset, data) in extents.iter() {
        put(medium, &format!("{folder}/{offset}"), data)?;
    }
    Ok(folder)
}

fn put(medium: &dyn Medium, path: &str, bytes: &[u8]) -> io::Result<()> {
    medium.write(path, 0, bytes)?;
    medium.sync(path)
}
