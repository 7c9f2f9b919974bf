use super::{Hook, Verb};
use crate::{Access, Handle, OpenAccess, Result, Status};

/// Nothing is changed: verbs that would answer [`Status::RoFs`], and nobody has a right to.
#[derive(Debug, Clone, Copy)]
pub struct ReadOnly;

impl Hook for ReadOnly {
    fn around<T>(&self, verb: Verb, _node: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb.changes() { Err(Status::RoFs) } else { work() }
    }

    fn rights(&self, granted: Access) -> Access {
        granted & (Access::READ | Access::LOOKUP | Access::EXECUTE)
    }

    fn opens(&self, access: OpenAccess, makes: bool) -> Result<()> {
        if makes || access.writes() { Err(Status::RoFs) } else { Ok(()) }
    }
}
