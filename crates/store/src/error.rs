use crate::medium::MediumError;

/// Why a store cannot be opened or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be opened or read.
    #[error(
        "the state of clients in {name} cannot be read: {source}; moved away, the server starts \
        without it, and clients lose their locks"
    )]
    Read {
        /// The name of the medium.
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
        /// The name of the medium.
        name: String,
        /// Its format.
        found: u32,
        /// The format of this version.
        expected: u32,
    },
    /// The store cannot be written: nothing is stored until [`crate::Store::repair`].
    #[error("the state of clients in {name} cannot be written: {source}")]
    Write {
        /// The name of the medium.
        name: String,
        /// The cause.
        source: MediumError,
    },
    /// An earlier write has failed, and the store has not been repaired.
    #[error("the state of clients in {name} cannot be written at present")]
    Broken {
        /// The name of the medium.
        name: String,
    },
}
