use anyhow::Result;

use super::{Context, Figure, Parameter, Parameters, Target, TargetKind};

/// Operations that are performed on targets and measured.
pub trait Workload: Send + Sync {
    /// The workload's name on the command line.
    fn name(&self) -> &'static str;

    /// Returns its description in a line, without a full stop.
    fn about(&self) -> &'static str;

    /// Returns its origin and the meaning of its figures, in some sentences.
    fn origin(&self) -> &'static str;

    /// All parameters, in the order of the help text.
    fn parameters(&self) -> &'static [Parameter];

    /// Figures of the original work.
    fn history(&self) -> &'static [Figure] {
        &[]
    }

    /// Returns the kind of target that it needs.
    fn needs(&self) -> Needs {
        Needs::Files
    }

    /// Returns the number of rounds if `asked` are asked for. A workload that repeats by itself
    /// returns 1.
    fn rounds(&self, asked: u32) -> u32 {
        asked
    }

    /// Checks that the workload can run with these parameters on some target.
    ///
    /// # Errors
    /// The parameter that makes no sense, with a better value.
    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let _ = parameters;
        Ok(())
    }

    /// Checks that everything the workload needs is available, such as tools and rights.
    ///
    /// # Errors
    /// The missing tool or right.
    fn check(&self, context: &Context<'_>) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Runs one round on one target. It depends only on the parameters and the seed; its directory
    /// is empty and is emptied afterwards.
    ///
    /// # Errors
    /// The first failure, such as wrong data. Earlier samples are kept.
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
    /// Returns whether a target meets the need.
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
