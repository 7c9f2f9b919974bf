use std::ops::RangeInclusive;
use std::sync::Arc;

use comity_export::{Exports, Visitor};
use comity_proto::nfs3::{PROGRAM, VERSION, Writeverf3};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_xdr::Encoder;

use crate::recall::Delegated;
use crate::request::Request;
use crate::status::nfsstat3;
use crate::table::row;
use crate::verbs::VERBS;

/// The program NFS, version 3.
pub struct Nfs3 {
    exports: Arc<Exports>,
    verifier: Writeverf3,
    delegated: Option<Delegated>,
}

impl Nfs3 {
    /// Serves `exports`. The `verifier` must be another in every life of the server that can have
    /// lost uncommitted data, and the same during one (RFC 1813, 3.3.7).
    #[must_use]
    pub const fn new(exports: Arc<Exports>, verifier: Writeverf3) -> Self {
        Self { exports, verifier, delegated: None }
    }

    /// Recalls what NFSv4 clients were delegated where a call stands against it.
    #[must_use]
    pub fn recalling(self, delegated: Delegated) -> Self {
        Self { delegated: Some(delegated), ..self }
    }

    pub(crate) const fn delegated(&self) -> Option<&Delegated> {
        self.delegated.as_ref()
    }

    /// What a WRITE or COMMIT is signed with.
    pub(crate) const fn verifier(&self) -> Writeverf3 {
        self.verifier
    }
}

impl Program<Visitor> for Nfs3 {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        row(&VERBS, procedure).map_or("unknown", |row| row.name)
    }

    fn repeat(&self, _version: u32, procedure: u32) -> Repeat {
        row(&VERBS, procedure).map_or(Repeat::Harmless, |row| row.repeat)
    }

    fn call(&self, call: &Call<'_>, visitor: &Visitor, reply: &mut Encoder) -> Outcome {
        let Some(row) = row(&VERBS, call.header.procedure) else { return Outcome::ProcUnavail };
        let plan = self.exports.current();
        let request = Request::new(&plan, visitor, call);
        row.perform(self, &request, reply, |status| nfsstat3(status) as u32)
    }
}
