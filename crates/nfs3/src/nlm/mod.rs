//! The lock manager of NFSv3: NLM version 4 (RFC 1813, appendix II), over the engine that NFSv4
//! uses, so that clients of both exclude each other.
//!
//! Calls are answered at once; one that waits is told by a call of ours ([`Grant`]). The procedures
//! that are answered by calls (`NLM4_LOCK_MSG` and its like) are not spoken: Linux, Solaris and
//! illumos use the others.

mod cancel;
mod free_all;
mod grant;
mod lock;
mod locked;
mod null;
mod owner;
mod share;
mod stats;
mod test;
mod unlock;
mod unshare;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use comity_export::{Exports, Visitor};
use comity_proto::nlm::{PROGRAM, VERSION, procedure};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_state::{Engine, HostLock, Locals, LockRefusal, Mark, Taken};
use comity_xdr::Encoder;

pub use grant::{Grant, Grants};

use crate::request::Request;
use crate::table::{Row, Verb};

/// Waits until what the engine has recorded is on stable storage; `false` if that failed.
pub type Settle = dyn Fn(Mark) -> bool + Send + Sync;

/// The program NLM, version 4.
pub struct Nlm {
    exports: Arc<Exports>,
    engine: Arc<Engine>,
    clock: Box<dyn Fn() -> Duration + Send + Sync>,
    settle: Arc<Settle>,
    locals: Option<Arc<dyn Locals>>,
}

impl Nlm {
    /// Locks files of `exports` in `engine`, by the `clock` that goes by. Hosts with locks are
    /// known after a restart: no lock is granted to a new one before `settle` has been waited for.
    #[must_use]
    pub fn new(
        exports: Arc<Exports>,
        engine: Arc<Engine>,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
        settle: Arc<Settle>,
    ) -> Self {
        Self { exports, engine, clock: Box::new(clock), settle, locals: None }
    }

    /// The same beside programs on the server that lock files, too.
    #[must_use]
    pub fn beside(self, locals: Option<Arc<dyn Locals>>) -> Self {
        Self { locals, ..self }
    }

    fn now(&self) -> Duration {
        (self.clock)()
    }
}

/// Takes bytes from programs on the server, then does `lock`; nothing if they have them.
fn take(
    locals: Option<&dyn Locals>,
    wish: &HostLock<'_>,
    mut lock: impl FnMut() -> Result<(), LockRefusal>,
) -> Result<Result<(), LockRefusal>, Taken> {
    let Some(locals) = locals else { return Ok(lock()) };
    let mut locked = None;
    let taken = locals.take(&wish.file, (wish.range, wish.kind), &mut || {
        let done = locked.insert(lock());
        done.is_ok()
    });
    locked.ok_or(taken)
}

/// What a host is known by: its address. What it calls itself may be anybody's.
pub(crate) fn name_of(address: IpAddr) -> Vec<u8> {
    address.to_canonical().to_string().into_bytes()
}

impl Program<Visitor> for Nlm {
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

    fn call(&self, call: &Call<'_>, visitor: &Visitor, reply: &mut Encoder) -> Outcome {
        let Some(row) = row(call.header.procedure) else { return Outcome::ProcUnavail };
        let plan = self.exports.current();
        let request = Request::new(&plan, visitor, call);
        // Every verb says its failures itself, behind the cookie of its call.
        row.perform(self, &request, reply, |_| 0)
    }
}

static VERBS: [Row<Nlm>; 9] = [
    verb(procedure::NULL, "NULL", Repeat::Harmless, null::null),
    verb(procedure::TEST, "TEST", Repeat::Harmless, test::test),
    verb(procedure::LOCK, "LOCK", Repeat::Remember, lock::lock),
    verb(procedure::CANCEL, "CANCEL", Repeat::Remember, cancel::cancel),
    verb(procedure::UNLOCK, "UNLOCK", Repeat::Remember, unlock::unlock),
    verb(procedure::SHARE, "SHARE", Repeat::Remember, share::share),
    verb(procedure::UNSHARE, "UNSHARE", Repeat::Remember, unshare::unshare),
    verb(procedure::NM_LOCK, "NM_LOCK", Repeat::Remember, lock::nm_lock),
    verb(procedure::FREE_ALL, "FREE_ALL", Repeat::Remember, free_all::free_all),
];

const fn verb(number: u32, name: &'static str, repeat: Repeat, verb: Verb<Nlm>) -> Row<Nlm> {
    Row { number, name, repeat, absent_words: 0, verb }
}

fn row(procedure: u32) -> Option<&'static Row<Nlm>> {
    VERBS.iter().find(|row| row.number == procedure)
}
