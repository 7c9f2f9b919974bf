use anyhow::Result;

use super::{Context, Figure, Parameter, Parameters, Target, TargetKind};

/// Something that is done to targets and measured.
pub trait Workload: Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Returns its description in a line, without a full stop.
    fn about(&self) -> &'static str;

    /// Returns its origin and the meaning of its figures, in some sentences.
    fn origin(&self) -> &'static str;

    /// All it can be told, in the order of the help text.
    fn parameters(&self) -> &'static [Parameter];

    /// Figures of the original work.
    fn history(&self) -> &'static [Figure] {
        &[]
    }

    /// Returns the kind of target that it needs.
    fn needs(&self) -> Needs {
        Needs::Files
    }

    /// Returns the number of rounds, if so many are asked for. One that repeats by itself says 1.
    fn rounds(&self, asked: u32) -> u32 {
        asked
    }

    /// Checks that it can be run with these parameters on some target.
    ///
    /// # Errors
    /// Which of them makes no sense, and what would.
    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let _ = parameters;
        Ok(())
    }

    /// Checks that everything it needs is here: a missing tool, a right.
    ///
    /// # Errors
    /// That.
    fn check(&self, context: &Context<'_>) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// One round on one target. All it does follows from the parameters and the seed; the directory
    /// it is given is empty and is emptied after it.
    ///
    /// # Errors
    /// The first thing that failed; wrong data among that. Samples that were taken before are kept.
    fn run(&self, context: &mut Context<'_>) -> Result<()>;
}

/// The needs of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Files, however they are reached.
    Files,
    /// A directory of this machine: programs run in it.
    Directory,
    /// Files that can be locked.
    Locks,
    /// A server that speaks the protocol.
    Protocol,
    /// A server that knows its callers by their keys.
    Keys,
}

impl Needs {
    /// Returns whether a target meets it.
    #[must_use]
    pub fn met_by(self, target: &dyn Target) -> bool {
        match self {
            Self::Files => true,
            Self::Directory => target.kind() == TargetKind::Directory,
            Self::Locks => target.has_locks(),
            Self::Protocol => target.server().is_some(),
            Self::Keys => target.has_keys(),
        }
    }
}
