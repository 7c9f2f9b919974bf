use std::sync::Arc;
use std::time::Duration;

use comity_export::{Node, View};
use comity_state::{Engine, FileKey, Share};
use comity_vfs::{Result, Status};

use crate::program::Nfs3;

/// Reading.
pub(crate) const READ: Share = Share::access(Share::READ);
/// Any change: of the data, the attributes, or the names.
pub(crate) const CHANGE: Share = Share::access(Share::BOTH);

/// What clients of NFSv4 were delegated: calls of NFSv3 recall it where they stand against it.
pub struct Delegated {
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
}

impl Delegated {
    /// What `engine` knows, by the `clock` it goes by.
    #[must_use]
    pub fn new(engine: Arc<Engine>, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { engine, clock: Box::new(clock) }
    }

    /// Whether there is anything at all. Costs a look at a number.
    fn is_nothing(&self) -> bool {
        !self.engine.has_delegations()
    }

    fn recall(&self, view: &View<'_>, node: &Node, share: Share) -> Result<()> {
        let key = FileKey { export: view.export_id().0, handle: *node.handle() };
        let broken = self.engine.break_delegations((self.clock)(), None, &key, share);
        broken.map_err(|_| Status::Delay)
    }
}

impl Nfs3 {
    /// Sees to it that nobody else was promised what a call is about to break.
    ///
    /// # Errors
    /// [`Status::Delay`]: it is being recalled.
    pub(crate) fn recall(&self, view: &View<'_>, node: &Node, share: Share) -> Result<()> {
        match self.delegated() {
            Some(delegated) if !delegated.is_nothing() => delegated.recall(view, node, share),
            _ => Ok(()),
        }
    }

    /// The same for the object of a name that is about to lose it. That there is none, or none that
    /// the caller may know of, the call itself will find.
    ///
    /// # Errors
    /// [`Status::Delay`].
    pub(crate) fn recall_named(&self, view: &View<'_>, dir: &Node, name: &[u8]) -> Result<()> {
        let delegated = self.delegated().filter(|delegated| !delegated.is_nothing());
        match delegated.map(|delegated| (delegated, view.lookup(dir, name))) {
            Some((delegated, Ok((seen, _)))) => delegated.recall(view, &seen.node, CHANGE),
            _ => Ok(()),
        }
    }
}
