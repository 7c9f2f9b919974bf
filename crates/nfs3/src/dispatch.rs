use std::ops::RangeInclusive;

use comity_export::RpcPeer;
use comity_proto::nfs3::{PROGRAM, VERSION};
use comity_rpc::{Call, Outcome, Program, Repeat};
use comity_vfs::Status;
use comity_xdr::Encoder;

use crate::forward::forward;
use crate::program::Nfs3;
use crate::request::Request;
use crate::status::nfsstat3;
use crate::table::row;
use crate::verbs::VERBS;

impl Program<RpcPeer> for Nfs3 {
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

    fn call(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let Some(row) = row(&VERBS, call.header.procedure) else { return Outcome::ProcUnavail };
        let performed = {
            let plan = self.exports().current();
            let request = Request::new(&plan, visitor, call).forwarded_by(self.forwarder());
            row.perform(self, &request, reply, |status| nfsstat3(status) as u32)
        };
        performed.unwrap_or_else(|referred| {
            forward(self.forwarder(), referred, (visitor, call, row.repeat), reply, |reply| {
                let start = reply.checkpoint();
                row.failed(nfsstat3(Status::Delay) as u32, (reply, start))
            })
        })
    }
}
