use std::path::{Path, PathBuf};

use super::case::{Case, Configuration};

/// The programs that make the calls: two builds of the example `instructions`.
#[derive(Debug, Clone, clap::Args)]
pub struct Programs {
    /// The program as it is delivered.
    #[arg(long, default_value = "target/release/examples/instructions")]
    program: PathBuf,
    /// Built without range maps and cloaks (`--no-default-features`).
    #[arg(long, default_value = "target/release/examples/instructions-without-maps")]
    without_maps: PathBuf,
}

impl Programs {
    /// Returns the program for a case.
    pub(super) fn of(&self, case: &Case) -> &Path {
        match case.configuration {
            Configuration::Van => &self.without_maps,
            _ => &self.program,
        }
    }
}
