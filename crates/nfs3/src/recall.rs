use std::sync::Arc;
use std::time::Duration;

use comity_export::{Node, View};
use comity_state::{Engine, Error, Share, WriterSays};
use comity_vfs::{FileType, Result, Status};

use crate::nlm::{Settle, name_of};
use crate::request::Request;

/// What a call is about to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// Reads its data.
    Read,
    /// Writes data that may be nowhere else but at the client.
    Write,
    /// Sets its size.
    Resize,
    /// Changes its attributes or its names.
    Change,
}

impl Act {
    /// The share that delegations are held against.
    const fn share(self) -> Share {
        match self {
            Self::Read => Share::access(Share::READ),
            Self::Write | Self::Resize | Self::Change => Share::access(Share::BOTH),
        }
    }

    /// The access that deny modes are held against.
    const fn access(self) -> u32 {
        match self {
            Self::Read => Share::READ,
            Self::Write | Self::Resize => Share::WRITE,
            Self::Change => 0,
        }
    }

    /// The answer where a deny mode forbids it. A client drops what it wanted to write when it is
    /// told of an error, and its program may have ended: it is told to come again. Nothing is lost
    /// by a READ or a truncation that is refused.
    const fn denied(self) -> Status {
        match self {
            Self::Write => Status::Locked,
            Self::Read | Self::Resize | Self::Change => Status::Acces,
        }
    }
}

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
    pub(crate) fn is_nothing(&self) -> bool {
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

    /// Whether an act may meet anything that clients hold. Costs a look at two numbers, or three.
    #[inline]
    pub(crate) fn concerns(&self, act: Act) -> bool {
        self.engine.has_delegations()
            || self.engine.has_denies()
            || act != Act::Read && self.engine.is_in_grace()
    }

    /// Apart, so that what nearly every call does need not copy for the sake of few.
    #[inline(never)]
    pub(crate) fn check(
        &self,
        request: &Request<'_>,
        view: &View<'_>,
        (node, act): (&Node, Act),
    ) -> Result<()> {
        self.await_reclaims(view, node, act)?;
        self.check_denied(request, view, (node, act))?;
        self.recall(view, node, act)
    }

    /// A client that reclaims a write delegation writes over what was changed meanwhile.
    fn await_reclaims(&self, view: &View<'_>, node: &Node, act: Act) -> Result<()> {
        if act == Act::Read || !self.engine.awaits_opens() {
            return Ok(());
        }
        // Only files are opened and delegated.
        let is_file = view.getattr(node)?.file_type == FileType::Regular;
        if is_file { Err(Status::Delay) } else { Ok(()) }
    }

    fn check_denied(
        &self,
        request: &Request<'_>,
        view: &View<'_>,
        (node, act): (&Node, Act),
    ) -> Result<()> {
        if act.access() == 0 || !self.engine.has_denies() {
            return Ok(());
        }
        let host = name_of(request.visitor.peer().ip());
        let what = (&view.key(node), act.access());
        self.engine.check_denied((self.clock)(), &host, what).map_err(|error| match error {
            Error::ShareDenied => act.denied(),
            _ => Status::Delay,
        })
    }

    fn recall(&self, view: &View<'_>, node: &Node, act: Act) -> Result<()> {
        if self.is_nothing() {
            return Ok(());
        }
        let key = view.key(node);
        let broken = self.engine.break_delegations((self.clock)(), None, &key, act.share());
        broken.map_err(|_| Status::Delay)?;
        // A READ leaves nothing that could be written over.
        if act == Act::Read {
            return Ok(());
        }
        // A client that is told to come again keeps what it wants written. It would throw that away
        // if it were told of an error.
        let settled = self.engine.is_settled(self.settle.as_deref());
        if settled { Ok(()) } else { Err(Status::Delay) }
    }
}
