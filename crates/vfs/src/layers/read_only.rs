use super::{Hook, Verb};
use crate::{Access, Handle, OpenAccess, Result, Status};

/// Makes a file system read-only: verbs that change something fail with [`Status::RoFs`], and the
/// rights to change anything are removed.
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
