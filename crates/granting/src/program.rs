use std::ops::RangeInclusive;
use std::sync::Arc;

use comity_export::{Exports, RpcPeer};
use comity_grants::Grants;
use comity_programs::{answer, done};
use comity_proto::grants::{PROGRAM, VERSION, procedure};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_xdr::Encoder;

use crate::answer::no_key;
use crate::request::Request;
use crate::{ask, list, revoke, submit};

/// The grant program, version 1.
pub struct GrantProgram {
    exports: Arc<Exports>,
    grants: Arc<Grants>,
}

impl GrantProgram {
    /// Makes the program for these exports and grants.
    #[must_use]
    pub fn new(exports: Arc<Exports>, grants: Arc<Grants>) -> Self {
        Self { exports, grants }
    }
}

impl Program<RpcPeer> for GrantProgram {
    fn number(&self) -> u32 {
        PROGRAM
    }

    fn versions(&self) -> RangeInclusive<u32> {
        VERSION..=VERSION
    }

    fn procedure_name(&self, _version: u32, procedure: u32) -> &'static str {
        match procedure {
            procedure::NULL => "NULL",
            procedure::WHOAMI => "WHOAMI",
            procedure::SUBMIT => "SUBMIT",
            procedure::LIST => "LIST",
            procedure::DROP => "DROP",
            procedure::REVOKE => "REVOKE",
            procedure::WHY => "WHY",
            procedure::ID => "ID",
            procedure::FETCH => "FETCH",
            _ => "unknown",
        }
    }

    /// All calls may be repeated: submitting a credential again changes nothing.
    fn repeat(&self, _version: u32, _procedure: u32) -> Repeat {
        Repeat::Harmless
    }

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        if call.header.procedure == procedure::NULL {
            return done(call.arguments::<()>().map(|()| 0));
        }
        let plan = self.exports.current();
        let Some(key) = visitor.key() else {
            return done(Ok(answer::<()>(reply, Err(no_key()))));
        };
        let request = Request { grants: &self.grants, plan: &plan, key, visitor, call };
        match call.header.procedure {
            procedure::WHOAMI => done(ask::whoami(&request, call, reply)),
            procedure::SUBMIT => done(submit::submit(&request, call, reply)),
            procedure::LIST => done(list::list(&request, call, reply)),
            procedure::DROP => done(list::drop_held(&request, call, reply)),
            procedure::REVOKE => done(revoke::revoke(&request, call, reply)),
            procedure::WHY => done(ask::why(&request, call, reply)),
            procedure::ID => done(ask::id(&request, call, reply)),
            procedure::FETCH => done(ask::fetch(&request, call, reply)),
            _ => Outcome::ProcUnavail,
        }
    }
}
