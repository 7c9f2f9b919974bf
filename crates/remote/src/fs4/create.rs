//! Regular files are made by OPEN.

use comity_proto::nfs4::{
    Close4args, Createhow4, Creatverfattr, Open4args, Open4resok, OpenClaim4, Openflag4,
    StateOwner4, Stateid4, operation as op, share,
};
use comity_vfs::{Create, Cred, Disk, Handle, Made, Name, Result, SetAttr};
use comity_xdr::Opaque;

use super::attributes::{AttributeValues, OBJECT};
use super::names::{component, finish_made};
use super::remote4::Remote4;

impl Remote4 {
    pub(super) fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let set = match how {
            Create::Unchecked(set) | Create::Guarded(set) => *set,
            Create::Exclusive(_) => SetAttr::default(),
        };
        let values = AttributeValues::to_set(&set, &self.owners);
        let attrs = values.fattr();
        let openhow = Openflag4::Create(match how {
            Create::Unchecked(_) => Createhow4::Unchecked(attrs),
            Create::Guarded(_) => Createhow4::Guarded(attrs),
            Create::Exclusive(verf) => {
                Createhow4::Exclusive41(Creatverfattr { verf: *verf, attrs })
            }
        });
        let owner = self.callers.of(cred).id.to_be_bytes();
        let arguments = Open4args {
            seqid: 0,
            share_access: share::BOTH | share::WANT_NO_DELEG,
            share_deny: 0,
            owner: StateOwner4 { clientid: 0, owner: Opaque(&owner) },
            openhow,
            claim: OpenClaim4::Null(component(name)),
        };
        let call = self.call(cred, dir).bare(op::SAVEFH).op(op::GETATTR, &OBJECT);
        let close = Close4args { seqid: 0, open_stateid: Stateid4::CURRENT };
        let call = call.op(op::OPEN, &arguments).once().op(op::CLOSE, &close);
        let reply = self.perform(finish_made(call))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        results.status(op::SAVEFH)?;
        let before = self.attr(&mut results)?;
        let opened: Open4resok<'_> = results.next(op::OPEN)?;
        results.next::<Stateid4>(op::CLOSE)?;
        self.made(cred, &mut results, (before, opened.cinfo))
    }
}
