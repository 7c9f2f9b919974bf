//! The options that all tables with rows have.

use crate::server_process::ServerOptions;

/// The options of a table: its subject, the rows, and the exit code.
#[derive(Debug, Clone, clap::Args)]
pub struct RowOptions {
    /// The servers that are measured.
    #[command(flatten)]
    pub subject: ServerOptions,
    /// Measure fewer or smaller rounds, for a first look.
    #[arg(long)]
    pub quick: bool,
    /// Only the rows whose names contain one of these, e.g. `read,GETATTR`.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Exit with 1 if a row is worse than it may be.
    #[arg(long)]
    pub check: bool,
}

impl RowOptions {
    /// Returns whether a row is measured: its name contains one of the words, in any case, or there
    /// are no words.
    pub(crate) fn is_wanted(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.rows.is_empty() || self.rows.iter().any(|word| name.contains(&word.to_lowercase()))
    }
}
