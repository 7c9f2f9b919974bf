//! MOUNT version 3 (RFC 1813, appendix I): from a path to a first handle.

mod dump;
mod export;
mod mnt;
mod mounts;
mod null;
mod path;
mod status;
mod umnt;
mod umntall;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use comity_export::{Exports, RpcPeer};
use comity_proto::mount::{PROGRAM, VERSION, procedure};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_vfs::Status;
use comity_xdr::Encoder;

use self::mounts::Mounts;
use self::status::mountstat3;
use crate::forward::{CallForwarder, forward};
use crate::request::Request;
use crate::table::{Row, Verb, row};

/// The program MOUNT, version 3.
pub struct Mount {
    exports: Arc<Exports>,
    mounts: Mounts,
    /// The plan of which it was logged last that a client could not be referred.
    told: AtomicU64,
    forwarder: Option<Arc<dyn CallForwarder>>,
}

impl Mount {
    /// Gives out handles of `exports`.
    #[must_use]
    pub fn new(exports: Arc<Exports>) -> Self {
        Self { exports, mounts: Mounts::default(), told: AtomicU64::new(0), forwarder: None }
    }

    /// Forwards calls about exports that have moved to other servers.
    #[must_use]
    pub fn forwarding(self, forwarder: Arc<dyn CallForwarder>) -> Self {
        Self { forwarder: Some(forwarder), ..self }
    }

    /// Returns the status for a MNT of an export whose files other servers have. It is logged once
    /// for each configuration, so that clients cannot fill the log.
    fn refuse_referral(&self, request: &Request<'_>, path: &[u8]) -> Status {
        let generation = request.plan.generation();
        if self.told.swap(generation, Ordering::Relaxed) != generation {
            let (client, path) = (request.address(), path.escape_ascii());
            tracing::warn!(%client, %path, "MOUNT refused: NFSv3 clients cannot be referred");
        }
        Status::Acces
    }
}

impl Program<RpcPeer> for Mount {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        row(&VERBS, procedure).map_or("unknown", |row| row.name)
    }

    fn repeat(&self, _version: u32, _procedure: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let Some(row) = row(&VERBS, call.header.procedure) else { return Outcome::ProcUnavail };
        let forwarder = self.forwarder.as_deref();
        let performed = {
            let plan = self.exports.current();
            let request = Request::new(&plan, visitor, call).forwarded_by(forwarder);
            row.perform(self, &request, reply, |status| mountstat3(status) as u32)
        };
        performed.unwrap_or_else(|referred| {
            let call = (visitor, call, row.repeat);
            forward(forwarder, referred, call, reply, |_| Outcome::Silence)
        })
    }
}

static VERBS: [Row<Mount>; 6] = [
    verb(procedure::NULL, "NULL", null::null),
    verb(procedure::MNT, "MNT", mnt::mnt),
    verb(procedure::DUMP, "DUMP", dump::dump),
    verb(procedure::UMNT, "UMNT", umnt::umnt),
    verb(procedure::UMNTALL, "UMNTALL", umntall::umntall),
    verb(procedure::EXPORT, "EXPORT", export::export),
];

const fn verb(number: u32, name: &'static str, verb: Verb<Mount>) -> Row<Mount> {
    Row { number, name, repeat: Repeat::Harmless, absent_words: 0, verb }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_stands_at_its_number() {
        for (at, row) in VERBS.iter().enumerate() {
            assert_eq!(row.number as usize, at, "{}", row.name);
        }
    }
}
