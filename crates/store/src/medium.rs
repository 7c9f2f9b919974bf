//! The interface between the store and the place where its records are kept.

use std::error::Error as StdError;

use comity_state::{Record, Recovered};
use comity_vfs::AsServer;

/// Why a [`Medium`] failed.
pub type MediumError = Box<dyn StdError + Send + Sync>;

/// A place that keeps records: a file, or a service on other machines.
///
/// The records are not those of a caller, so writes need the evidence that the thread has the
/// server's own identity.
///
/// [`crate::Store`] calls it from one thread at a time. After an error it calls only
/// [`Medium::replace`] until that succeeds.
pub trait Medium: Send {
    /// Returns the name of the place for messages, such as its path.
    fn name(&self) -> String;

    /// Applies `records` in their order and puts them on stable storage. If the server crashes
    /// meanwhile, the first of them may be stored, and the others not.
    ///
    /// # Errors
    /// It is unknown then which of the records are stored.
    fn apply(&mut self, server: &AsServer, records: &[Record]) -> Result<(), MediumError>;

    /// Replaces all that is stored by `known`, on stable storage. The number of starts does not
    /// change.
    ///
    /// # Errors
    /// Each record is then as it was stored before, or as it is in `known`.
    fn replace(&mut self, server: &AsServer, known: &Recovered) -> Result<(), MediumError>;
}

/// A medium that was just opened, and what it holds.
pub struct OpenMedium {
    /// The medium.
    pub medium: Box<dyn Medium>,
    /// The number of times that it was opened, this time included.
    pub starts: u32,
    /// All that earlier servers stored in it.
    pub known: Recovered,
}
