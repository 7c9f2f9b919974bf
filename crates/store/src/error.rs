use crate::medium::MediumError;

/// Why a store cannot be opened, or stores nothing any more.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or read.
    #[error(
        "the state of clients in {name} cannot be read: {source}; moved away, the server starts \
        without it, and clients lose their locks"
    )]
    Read {
        /// The name of its medium.
        name: String,
        /// The cause.
        source: MediumError,
    },
    /// The store is of another version of this program.
    #[error(
        "the state of clients in {name} has format {found}, not {expected}: it is of a newer \
        comity"
    )]
    Format {
        /// The name of its medium.
        name: String,
        /// Its format.
        found: u32,
        /// The format of this version.
        expected: u32,
    },
    /// It cannot be written: nothing is stored until [`crate::Store::repair`].
    #[error("the state of clients in {name} cannot be written: {source}")]
    Write {
        /// The name of its medium.
        name: String,
        /// The cause.
        source: MediumError,
    },
    /// It could not be written before, and has not been repaired.
    #[error("the state of clients in {name} cannot be written at present")]
    Broken {
        /// The name of its medium.
        name: String,
    },
}
