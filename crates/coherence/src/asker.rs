use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use comity_export::{Clearance, Node, View};
use comity_state::{Client, Engine, Error, Io, Opened, Sender, Share, Shown, Stateid};
use comity_vfs::{FileKey, Result, Status};

use crate::act::Act;
use crate::changes::given;
use crate::holders::Changer;
use crate::names::ChangesDirectories;
use crate::rights::judge;
use crate::wait_for_clients::WaitForClients;

/// A caller whose operation may conflict with the state of other clients.
#[derive(Clone, Copy)]
pub struct Asker<'a> {
    /// The state of all clients.
    pub engine: &'a Engine,
    /// The time of the operation.
    pub now: Duration,
    /// The client that makes the call; `None` if it is unknown. Its own delegations do not conflict
    /// with the operation.
    pub client: Option<&'a Client>,
    /// Waits while clients return delegations of a directory; `None` if the operation cannot wait.
    pub patience: Option<&'a dyn WaitForClients>,
}

/// The result of a check of an operation under a stateid: the client that uses the stateid, if it
/// names a state, and the clearance.
pub type Checked<'a> = (Option<Shown<'a>>, Clearance<'a>);

impl<'a> Changer<'a> for Asker<'a> {
    fn client(&self) -> Option<&'a Client> {
        self.client
    }

    fn now(&self) -> Duration {
        self.now
    }

    fn pause(&self, moment: Duration) -> bool {
        self.patience.is_some_and(|patience| patience.wait_for_clients(self.now, moment))
    }
}

impl<'a> ChangesDirectories<'a> for Asker<'a> {
    fn engine(&self) -> Option<&'a Engine> {
        Some(self.engine)
    }

    fn clear_object(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<()> {
        self.clear(object, act).map(drop)
    }

    fn clear_object_named(
        &self,
        view: &View<'_>,
        (dir, name): (&Node, &[u8]),
        act: Act<'_>,
    ) -> Result<()> {
        if !self.engine.has_delegations() && !self.contradicts_layouts(act) {
            return Ok(());
        }
        match view.lookup(dir, name) {
            Ok((seen, _)) => self.clear((view, &seen.node), act).map(drop),
            Err(_) => Ok(()),
        }
    }
}

impl<'a> Asker<'a> {
    /// Recalls the delegations and layouts of an object by other clients that conflict with an act,
    /// if the caller may do the act.
    ///
    /// # Errors
    /// [`Status::Delay`]: a delegation or a layout is being recalled. [`Status`]: the caller may
    /// not do this, and nothing was recalled.
    #[inline]
    pub fn clear(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<Clearance<'a>> {
        if self.contradicts_layouts(act) {
            self.recall_layouts(object, act)?;
        }
        if self.engine.has_delegations() { self.recall(object, act) } else { Ok(self.given()) }
    }

    /// Clears a change of an object that the same operation made, so that clients have no
    /// delegation of it yet. A new directory is not delegated while the clearance of its name
    /// lives.
    #[must_use]
    pub fn clear_new(&self) -> Clearance<'a> {
        self.given()
    }

    /// Clears the truncation of a file by the OPEN that was just granted and has recalled
    /// conflicting delegations.
    #[must_use]
    pub fn clear_opened(&self, _: &Opened) -> Clearance<'a> {
        self.given()
    }

    fn given(&self) -> Clearance<'a> {
        given(self.engine, self.client)
    }

    /// Returns whether an act may contradict a layout of any file.
    pub(crate) fn contradicts_layouts(&self, act: Act<'_>) -> bool {
        act.contradicts_layouts() && self.engine.has_layouts()
    }

    #[inline(never)]
    fn recall_layouts(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<()> {
        judged(object, act, |file, may| {
            self.engine.recall_layouts_if(self.now, self.client, file, may)
        })
    }

    #[inline(never)]
    fn recall(&self, object: (&View<'_>, &Node), act: Act<'_>) -> Result<Clearance<'a>> {
        judged(object, act, |file, may| {
            self.engine.break_delegations_if(self.now, self.client, (file, act.share()), may)
        })?;
        Ok(self.given())
    }
}

/// Recalls state of an object by `recall`, which asks whether the caller may do the act if there is
/// anything to recall.
///
/// # Errors
/// [`Status::Delay`]: a recall is under way. [`Status`]: the caller may not do the act.
fn judged(
    (view, node): (&View<'_>, &Node),
    act: Act<'_>,
    recall: impl FnOnce(&FileKey, &dyn Fn() -> bool) -> comity_state::Result<()>,
) -> Result<()> {
    let refused = Cell::new(Status::Acces);
    let may = || judge(view, node, act).inspect_err(|why| refused.set(*why)).is_ok();
    match recall(&view.key(node), &may) {
        Ok(()) => Ok(()),
        Err(Error::Perm) => Err(refused.get()),
        Err(_) => Err(Status::Delay),
    }
}

/// Why an operation under a stateid is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The state of other clients conflicts with the operation.
    State(Error),
    /// The caller lacks the right; nothing was recalled.
    Rights(Status),
}

/// Checks a read or a write under a stateid. Delegations of others are recalled if the stateid
/// names no open of the caller, and the caller may do the operation.
///
/// # Errors
/// [`Refused`].
pub fn check_io<'a>(
    engine: &'a Engine,
    (sender, stateid): (Sender<'a>, &Stateid),
    (view, node): (&View<'_>, &Node),
    io: &Io<'_>,
) -> std::result::Result<Checked<'a>, Refused> {
    if view.is_by_layout() {
        // The stateid belongs to the metadata server, which sealed the handle for a client that it
        // allowed to read or write.
        return Ok((None, Clearance::given()));
    }
    let refused = Cell::new(None);
    let act = if io.access & Share::WRITE == 0 { Act::Read } else { Act::Write };
    let may = || judge(view, node, act).inspect_err(|why| refused.set(Some(*why))).is_ok();
    match engine.check_io_if(sender, stateid, io, &may) {
        Ok(shown) => {
            let bearer = shown.as_ref().map(|shown| &**shown.bearer);
            let clearance = given(engine, bearer.or(sender.client.map(Arc::as_ref)));
            Ok((shown, clearance))
        }
        Err(error) => Err(refused.get().map_or(Refused::State(error), Refused::Rights)),
    }
}
