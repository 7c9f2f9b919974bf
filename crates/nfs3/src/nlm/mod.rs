//! The lock manager of NFSv3: NLM version 4 (RFC 1813, appendix II). It locks in the engine
//! that NFSv4 uses, so that clients of both exclude each other.
//!
//! Calls are answered at once. The server calls a host whose wait has ended ([`Grant`]), and
//! one that asks for its results by a call ([`Message`]).

mod arguments;
mod cancel;
mod free_all;
mod grant;
mod lock;
mod message;
mod null;
mod owner;
mod share;
mod status;
mod test;
mod unlock;
mod unshare;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use comity_coherence::Settle;
use comity_export::{Exports, RpcPeer};
use comity_proto::nlm::{PROGRAM, VERSION, procedure};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_state::{
    Client, Engine, HostLock, LocalLock, Locals, LockRefusal, LockRequestKind, Taken,
};
use comity_xdr::Encoder;

pub use grant::{Grant, Grants};
pub use message::Message;

use crate::forward::{CallForwarder, forward, has_told};
use crate::request::Request;
use crate::table::{Row, Verb};

/// The program NLM, version 4.
pub struct Nlm {
    exports: Arc<Exports>,
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    settle: Arc<Settle>,
    locals: Option<Arc<dyn Locals>>,
    messages: Option<SyncSender<Message>>,
    forwarder: Option<Arc<dyn CallForwarder>>,
}

impl Nlm {
    /// Locks files of `exports` in `engine`, whose times come from `clock`. Hosts with
    /// locks are known after a restart: a new host gets no lock before `settle` has stored
    /// it.
    #[must_use]
    pub fn new(
        exports: Arc<Exports>,
        engine: Arc<Engine>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        settle: Arc<Settle>,
    ) -> Self {
        let (clock, forwarder) = (Box::new(clock), None);
        Self { exports, engine, clock, settle, locals: None, messages: None, forwarder }
    }

    /// Returns the program with locks that also exclude programs on the server.
    #[must_use]
    pub fn beside(self, locals: Option<Arc<dyn Locals>>) -> Self {
        Self { locals, ..self }
    }

    /// Returns the program with a queue for results that are sent by calls. If the queue is
    /// full, results are dropped, and the host asks again. Without a queue the procedures
    /// with such results are unavailable.
    #[must_use]
    pub fn messaging(self, messages: SyncSender<Message>) -> Self {
        Self { messages: Some(messages), ..self }
    }

    /// Forwards calls about exports that have moved to other servers.
    #[must_use]
    pub fn forwarding(self, forwarder: Arc<dyn CallForwarder>) -> Self {
        Self { forwarder: Some(forwarder), ..self }
    }

    fn now(&self) -> Duration {
        (self.clock)()
    }

    /// Returns whether all that the engine has recorded is on stable storage. A host that
    /// is not stored could not reclaim after a restart, and one whose loss is not stored
    /// could reclaim too much.
    fn is_settled(&self) -> bool {
        self.engine.is_settled(Some(&*self.settle))
    }
}

/// Takes bytes from programs on the server, then does `lock`. Fails if a program has locked the
/// bytes.
fn take(
    locals: Option<&dyn Locals>,
    (host, wish, kind): (&Client, &HostLock<'_>, LockRequestKind),
    mut lock: impl FnMut() -> Result<usize, LockRefusal>,
) -> Result<Result<(), LockRefusal>, Taken> {
    let Some(locals) = locals else { return Ok(lock().map(drop)) };
    let mut locked = None;
    let (reclaim, origin) = (kind == LockRequestKind::Reclaim, host.origin());
    let wanted = LocalLock { range: wish.range, kind: wish.kind, origin, reclaim };
    let taken = locals.take(&wish.file, &wanted, &mut || {
        let done = locked.insert(lock());
        done.as_ref().ok().copied()
    });
    locked.map(|locked| locked.map(drop)).ok_or(taken)
}

impl Program<RpcPeer> for Nlm {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        row(procedure).map_or("unknown", |row| row.name)
    }

    fn repeat(&self, _version: u32, procedure: u32) -> Repeat {
        row(procedure).map_or(Repeat::Harmless, |row| row.repeat)
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let row =
            row(call.header.procedure).filter(|row| !row.is_message() || self.messages.is_some());
        let Some(row) = row else { return Outcome::ProcUnavail };
        let forwarder = self.forwarder.as_deref();
        let performed = {
            let plan = self.exports.current();
            let request = Request::new(&plan, visitor, call).forwarded_by(forwarder);
            // Every procedure puts its failures into its own reply, after the cookie of the call.
            row.perform(self, &request, reply, |_| 0)
        };
        if row.number == procedure::FREE_ALL && !has_told(forwarder, (visitor, call)) {
            return Outcome::Silence;
        }
        performed.unwrap_or_else(|referred| {
            let call = (visitor, call, row.repeat);
            forward(forwarder, referred, call, reply, |_| Outcome::Silence)
        })
    }
}

static VERBS: [Row<Nlm>; 13] = [
    verb(procedure::NULL, "NULL", Repeat::Harmless, null::null),
    verb(procedure::TEST, "TEST", Repeat::Harmless, test::test),
    verb(procedure::LOCK, "LOCK", Repeat::Remember, lock::lock),
    verb(procedure::CANCEL, "CANCEL", Repeat::Remember, cancel::cancel),
    verb(procedure::UNLOCK, "UNLOCK", Repeat::Remember, unlock::unlock),
    // A host sends a lost call again, and the results are then sent again.
    verb(procedure::TEST_MSG, "TEST_MSG", Repeat::Harmless, message::test),
    verb(procedure::LOCK_MSG, "LOCK_MSG", Repeat::Harmless, message::lock),
    verb(procedure::CANCEL_MSG, "CANCEL_MSG", Repeat::Harmless, message::cancel),
    verb(procedure::UNLOCK_MSG, "UNLOCK_MSG", Repeat::Harmless, message::unlock),
    verb(procedure::SHARE, "SHARE", Repeat::Remember, share::share),
    verb(procedure::UNSHARE, "UNSHARE", Repeat::Remember, unshare::unshare),
    verb(procedure::NM_LOCK, "NM_LOCK", Repeat::Remember, lock::nm_lock),
    verb(procedure::FREE_ALL, "FREE_ALL", Repeat::Remember, free_all::free_all),
];

const fn verb(number: u32, name: &'static str, repeat: Repeat, verb: Verb<Nlm>) -> Row<Nlm> {
    Row { number, name, repeat, absent_words: 0, verb }
}

impl Row<Nlm> {
    /// Returns whether the results are sent by a call.
    const fn is_message(&self) -> bool {
        matches!(self.number, procedure::TEST_MSG..=procedure::UNLOCK_MSG)
    }
}

fn row(procedure: u32) -> Option<&'static Row<Nlm>> {
    VERBS.iter().find(|row| row.number == procedure)
}
