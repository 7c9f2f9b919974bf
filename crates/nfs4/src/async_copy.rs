//! Asynchronous copies (RFC 7862, 4): they continue after COPY was answered, in pieces, on any
//! thread that has time.
//!
//! A copy stores only the caller and the arguments of its request. Each piece is checked again,
//! under the plan in force at that moment and the stateids of the request. A copy therefore has no
//! right that a WRITE of that moment would not have. If a check fails, the copy ends with its
//! status.

use std::sync::Arc;

use comity_coherence::{Clearance, Clock, check_io};
use comity_credential::KeptCredential;
use comity_export::{Door, Exports, Node, RpcPeer, SealedHandle, View};
use comity_proto::nfs4::{Nfsstat4, Verifier4};
use comity_state::{
    Caller, Client, Engine, Io, OffloadEnd, Origin, Sender, Share, Stateid, Verifier,
};

use crate::filehandle::{Object, enter};
use crate::limits::COPY_PIECE_BYTES_MAX;
use crate::stop::Stop;

/// An asynchronous copy. If it is dropped before its end, it counts as failed.
pub struct Copying {
    order: CopyOrder,
    copied: u64,
    over: bool,
}

/// The arguments of an asynchronous copy.
pub(crate) struct CopyOrder {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Clock,
    pub(crate) exports: Arc<Exports>,
    pub(crate) visitor: RpcPeer,
    pub(crate) credential: KeptCredential,
    pub(crate) client: Arc<Client>,
    pub(crate) caller: Caller,
    /// The stateid of the copy.
    pub(crate) stateid: Stateid,
    pub(crate) source: End,
    pub(crate) target: End,
    /// Number of bytes to copy.
    pub(crate) length: u64,
    pub(crate) verifier: Verifier4,
}

/// The source or the target of a copy.
pub(crate) struct End {
    /// The file.
    pub(crate) handle: SealedHandle,
    /// The stateid under which the client uses it.
    pub(crate) stateid: Stateid,
    /// Offset of the first byte.
    pub(crate) offset: u64,
}

/// Accepts a copy, whose pieces are then copied by [`Copying::go_on`]. Returns the copy if there is
/// no room for it.
pub type Copier = dyn Fn(Box<Copying>) -> Result<(), Box<Copying>> + Send + Sync;

/// The result of one step of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The next piece can be copied.
    More,
    /// The copy must pause because of a delegation that is being recalled, or a slow disk.
    Later,
    /// The copy has ended. [`Engine::poll_effect`] returns the CB_OFFLOAD for the client.
    Over,
}

impl Copying {
    /// Returns a copy that has not begun.
    pub(crate) const fn new(order: CopyOrder) -> Self {
        Self { order, copied: 0, over: false }
    }

    /// Returns the origin of the client that asked for the copy.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.order.caller.origin
    }

    /// Copies a piece.
    pub fn go_on(&mut self) -> Progress {
        if !self.order.engine.begin_piece(
            self.order.clock.now(),
            &self.order.client,
            &self.order.stateid,
        ) {
            self.over = true;
            return Progress::Over;
        }
        match self.piece() {
            Ok(copied) => {
                self.copied += copied;
                // A source that was truncated meanwhile ends earlier.
                let is_last = copied == 0 || self.copied >= self.order.length;
                self.said(is_last.then_some(Nfsstat4::Ok), Progress::More)
            }
            Err(Stop::Status(Nfsstat4::Delay)) => self.said(None, Progress::Later),
            Err(Stop::Status(status) | Stop::Told(status)) => {
                self.said(Some(status), Progress::Over)
            }
            Err(Stop::Replay(_)) => self.said(Some(Nfsstat4::ServerFault), Progress::Over),
        }
    }

    /// Cancels a copy that was not accepted, as if it had never begun.
    pub(crate) fn withdraw(mut self) {
        self.over = true;
        self.order.engine.forget_offload(&self.order.client, &self.order.stateid);
    }

    /// Reports the progress of the copy to the engine; with a status, its end.
    fn said(&mut self, status: Option<Nfsstat4>, otherwise: Progress) -> Progress {
        let verifier = Verifier(self.order.verifier);
        let end = status.map(|status| OffloadEnd { status: status as u32, verifier });
        let now = self.order.clock.now();
        self.order.engine.end_piece(now, &self.order.client, &self.order.stateid, self.copied, end);
        self.over = end.is_some();
        if self.over { Progress::Over } else { otherwise }
    }

    fn piece(&self) -> Result<u64, Stop> {
        let plan = self.order.exports.current();
        let credential = self.order.credential.get();
        let door = Door::Handle(self.order.target.handle.bytes());
        let Object::In(view, target) = enter(&plan, &self.order.visitor, &credential, door)? else {
            return Err(Nfsstat4::Stale.into());
        };
        let source = view.admit(self.order.source.handle.bytes())?;
        self.check(&view, (&self.order.source, &source), Share::READ)?;
        let clearance = self.check(&view, (&self.order.target, &target), Share::WRITE)?;
        let rest = self.order.length.saturating_sub(self.copied).min(COPY_PIECE_BYTES_MAX);
        let at = |end: &End| end.offset.saturating_add(self.copied);
        let (from, to) = ((&source, at(&self.order.source)), (&target, at(&self.order.target)));
        Ok(view.copy(clearance, from, to, rest)?.value)
    }

    /// Checks that one end may be read or written under its stateid.
    fn check(
        &self,
        view: &View<'_>,
        (end, node): (&End, &Node),
        access: u32,
    ) -> Result<Clearance<'_>, Stop> {
        let (now, client) = (self.order.clock.now(), Some(&self.order.client));
        let sender = Sender { now, client, caller: self.order.caller };
        let io = Io { file: &view.key(node), access, user: None };
        Ok(check_io(&self.order.engine, (sender, &end.stateid), (view, node), &io)?.1)
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        if !self.over {
            self.said(Some(Nfsstat4::ServerFault), Progress::Over);
        }
    }
}
