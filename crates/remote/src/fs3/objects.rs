//! Verbs on one object: attributes, rights, symbolic links.

use comity_proto::nfs3::{
    Access3args, Access3res, Readlink3res, Setattr3args, Setattr3res, procedure,
};
use comity_vfs::{Access, Attr, Change, Cred, Disk, Handle, Result, SetAttr, Target, Time};

use super::attributes::{change, nfstime3, sattr3};
use super::remote3::{Remote3, fh};
use super::status::ok;

impl Remote3 {
    pub(super) fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        let file = self.file(node)?;
        let turn = set.size.map(|_| self.unstable.begin_write(node)).transpose()?;
        let (new_attributes, guard) = (sattr3(set), guard.map(nfstime3));
        let arguments = Setattr3args { object: fh(&file), new_attributes, guard };
        let reply = self.ask_using((cred, node), procedure::SETATTR, &arguments)?;
        let wcc = ok(reply.read::<Setattr3res>())?;
        if let Some(size) = set.size {
            self.unstable.cut(node, (size, u64::MAX));
        }
        drop(turn);
        Ok(change(&wcc))
    }

    pub(super) fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let file = self.file(node)?;
        let arguments = Access3args { object: fh(&file), access: wanted.bits() };
        let reply = self.ask_using((cred, node), procedure::ACCESS, &arguments)?;
        let granted = ok(reply.read::<Access3res>())?;
        let attr = self.told_or_asked(node, &granted.obj_attributes)?;
        Ok((Access::from_bits(granted.access) & wanted, attr))
    }

    pub(super) fn readlink(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
    ) -> Result<(Target, Attr<Disk>)> {
        let file = self.file(node)?;
        let reply = self.ask_using((cred, node), procedure::READLINK, &fh(&file))?;
        let link = ok(reply.read::<Readlink3res<'_>>())?;
        Ok((link.data.0.into(), self.told_or_asked(node, &link.symlink_attributes)?))
    }
}
