use std::sync::Arc;
use std::time::Duration;

use comity_export::{Node, View};
use comity_state::{Engine, Share, WriterSays};
use comity_vfs::{Result, Status};

use crate::nlm::Settle;
use crate::program::Nfs3;

/// Reading.
pub(crate) const READ: Share = Share::access(Share::READ);
/// Any change: of the data, the attributes, or the names.
pub(crate) const CHANGE: Share = Share::access(Share::BOTH);

/// What clients of NFSv4 were delegated: calls of NFSv3 recall it where they stand against it.
pub struct Delegated {
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    pause: Option<Box<Pause>>,
    settle: Option<Arc<Settle>>,
}

/// Lets calls to clients go out and a moment pass, while other threads serve what this one would;
/// whether there was anybody to wait for.
pub type Pause = dyn Fn(Duration) -> bool + Send + Sync;

impl Delegated {
    /// What `engine` knows, by the `clock` it goes by.
    #[must_use]
    pub fn new(engine: Arc<Engine>, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { engine, clock: Box::new(clock), pause: None, settle: None }
    }

    /// The same where a restart is outlived: who has lost a delegation to a call must not reclaim
    /// it and write over what the call has done.
    #[must_use]
    pub fn settling(self, settle: Option<Arc<Settle>>) -> Self {
        Self { settle, ..self }
    }

    /// Waits for clients by this; without it nobody is waited for.
    #[must_use]
    pub fn pausing(self, pause: Box<Pause>) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// Whether there is anything at all. Costs a look at a number.
    fn is_nothing(&self) -> bool {
        !self.engine.has_delegations()
    }

    /// What the holder of a write delegation says of a file whose change attribute is `change`.
    pub(crate) fn ask_writer(&self, view: &View<'_>, node: &Node, change: u64) -> WriterSays {
        let pause = |moment| self.pause.as_ref().is_some_and(|pause| pause(moment));
        let asked = (&view.key(node), change);
        self.engine.writer_says_soon((self.clock)(), None, asked, pause)
    }

    /// Whether somebody may have written to a file what has not arrived here.
    pub(crate) fn may_be_written(&self, view: &View<'_>, node: &Node) -> bool {
        self.engine.may_be_written(None, &view.key(node))
    }

    fn recall(&self, view: &View<'_>, node: &Node, share: Share) -> Result<()> {
        let key = view.key(node);
        let broken = self.engine.break_delegations((self.clock)(), None, &key, share);
        broken.map_err(|_| Status::Delay)?;
        // Who reads leaves nothing that could be written over.
        if share == READ {
            return Ok(());
        }
        // Where nothing can be stored the server has to be started again: whoever waits for that
        // keeps what he wants written, and who was told of an error would throw it away.
        let settled = self.engine.is_settled(self.settle.as_deref());
        if settled { Ok(()) } else { Err(Status::Delay) }
    }
}

impl Nfs3 {
    /// What is delegated, if there is anything at all.
    #[inline]
    pub(crate) fn anything_delegated(&self) -> Option<&Delegated> {
        self.delegated().filter(|delegated| !delegated.is_nothing())
    }

    /// Sees to it that nobody else was promised what a call is about to break.
    ///
    /// # Errors
    /// [`Status::Delay`]: it is being recalled.
    pub(crate) fn recall(&self, view: &View<'_>, node: &Node, share: Share) -> Result<()> {
        match self.anything_delegated() {
            Some(delegated) => delegated.recall(view, node, share),
            None => Ok(()),
        }
    }

    /// The same for the object of a name that is about to lose it. That there is none, or none that
    /// the caller may know of, the call itself will find.
    ///
    /// # Errors
    /// [`Status::Delay`].
    pub(crate) fn recall_named(&self, view: &View<'_>, dir: &Node, name: &[u8]) -> Result<()> {
        match self.anything_delegated().map(|delegated| (delegated, view.lookup(dir, name))) {
            Some((delegated, Ok((seen, _)))) => delegated.recall(view, &seen.node, CHANGE),
            _ => Ok(()),
        }
    }
}
