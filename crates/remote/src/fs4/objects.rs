//! Verbs on one object: attributes, rights, symbolic links.

use comity_proto::nfs4::{
    Access4res, Bitmap4, Linktext4, Nfsstat4, Setattr4args, Stateid4, attribute as a,
    operation as op,
};
use comity_vfs::{
    Access, Attr, Change, Cred, Disk, Handle, OpenAccess, Result, SetAttr, Status, Target, Time,
};

use super::attributes::{AttributeValues, OBJECT, nfstime4};
use super::remote4::Remote4;
use crate::compound::{OpFailure, StatePurpose, StateUse};

impl Remote4 {
    pub(super) fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        let values = AttributeValues::to_set(set, &self.owners);
        let turn = set.size.map(|_| self.unstable.begin_write(node)).transpose()?;
        let mut call = self.call(cred, node)?.op(op::GETATTR, &OBJECT);
        if let Some(ctime) = guard {
            let expected = AttributeValues::one(a::TIME_METADATA, &nfstime4(ctime));
            call = call.op(op::VERIFY, &expected.fattr());
        }
        let call = if set.size.is_some() {
            let purpose = StatePurpose::Attribute;
            let state = StateUse { purpose, ..self.state(cred, node, OpenAccess::Write)? };
            call.stateful(op::SETATTR, state, &values.fattr())
        } else {
            let (stateid, obj_attributes) = (Stateid4::ANONYMOUS, values.fattr());
            call.op(op::SETATTR, &Setattr4args { stateid, obj_attributes })
        };
        let reply = self.perform(call.op(op::GETATTR, &OBJECT));
        if set.mode.is_some() || set.uid.is_some() || set.gid.is_some() {
            // Forget the rights even if the reply is lost: the server may have made the change.
            let file = self.file(node)?;
            self.engine.with(|machine, _| machine.forget_rights(&file));
        }
        let reply = reply?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let before = self.attr(&mut results)?;
        if guard.is_some() {
            match results.status(op::VERIFY) {
                Err(OpFailure::Status(Nfsstat4::NotSame)) => return Err(Status::NotSync),
                verified => verified?,
            }
        }
        results.next::<Bitmap4>(op::SETATTR)?;
        if let Some(size) = set.size {
            self.unstable.cut(node, (size, u64::MAX));
        }
        drop(turn);
        Ok(Change { before: Some(before), after: self.attr(&mut results).ok() })
    }

    pub(super) fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let call = self.call(cred, node)?.op(op::ACCESS, &wanted.bits()).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let granted: Access4res = results.next(op::ACCESS)?;
        Ok((Access::from_bits(granted.access) & wanted, self.attr(&mut results)?))
    }

    pub(super) fn readlink(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
    ) -> Result<(Target, Attr<Disk>)> {
        let call = self.call(cred, node)?.bare(op::READLINK).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let target = results.next::<Linktext4<'_>>(op::READLINK)?.0.into();
        Ok((target, self.attr(&mut results)?))
    }
}
