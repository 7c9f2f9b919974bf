//! Makes the calls of a load: asks the server for handles and stateids, and remembers the layout of
//! the replies.

mod held;
pub mod nfs3;
pub mod nfs4;

use anyhow::{Result, bail};

use crate::call_templates::SERIAL_DIGITS;

/// The directory for new files, and the directories that are listed.
#[derive(Debug, Clone, Default)]
pub struct Pages {
    /// The directory for new files, below the top.
    pub created: String,
    /// Directories to list, one after the other.
    pub listed: Vec<String>,
}

/// The name whose digits are made new for each call.
const SERIAL_NAME: &[u8] = b"new-file-9999999999";

/// Returns the offset of the digits of the name in a call.
fn serial_place(call: &[u8]) -> Result<usize> {
    let found = call.windows(SERIAL_NAME.len()).position(|bytes| bytes == SERIAL_NAME);
    let Some(at) = found else { bail!("a call without the name") };
    Ok(at + SERIAL_NAME.len() - SERIAL_DIGITS)
}
