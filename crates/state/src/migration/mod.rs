//! State that moves to another engine: single clients, and all state of a volume.

mod check;
mod clients;
mod codec;
mod error;
mod export_volume;
mod files;
mod forget_volume;
mod import_volume;
mod joining;
mod moves;
mod moving_files;
mod owners;
mod recall_volume;
mod returning;

pub use error::{ExportRefusal, ImportRefusal, Section, TransferError};
pub use export_volume::ExportedVolume;
pub use moving_files::MovingFiles;
