//! Verbs on names in directories.

use comity_proto::nfs4::{
    ChangeInfo4, Component4, Create4args, Create4resok, Createtype4, NfsFtype4, Nfsstat4,
    Rename4args, Rename4resok, Specdata4, operation as op,
};
use comity_vfs::limits::LINK_TARGET_BYTES_MAX;
use comity_vfs::{
    Attr, Change, Changed, Cred, Device, Disk, Entry, Handle, Made, Name, Node, Result, SetAttr,
    Special, Status,
};
use comity_xdr::Opaque;

use super::attributes::{AttributeValues, OBJECT};
use super::change::change_of;
use super::remote4::{Remote4, TYPE};
use crate::compound::{CompoundCall, OpFailure, OpResults};

impl Remote4 {
    pub(super) fn lookup(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Entry<Disk>> {
        // Ask for the directory's attributes before the lookup: an entry cached with them must not
        // look newer than it is.
        let call = self.call(cred, dir)?.op(op::GETATTR, &OBJECT).op(op::LOOKUP, &component(name));
        let reply = self.perform(call.bare(op::GETFH).op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let dir = self.attr(&mut results)?;
        results.status(op::LOOKUP)?;
        let node = self.node(&mut results)?;
        self.callers.using(cred, &node.handle);
        Ok(Entry { node, dir: Some(dir) })
    }

    pub(super) fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        if *dir == self.root {
            return Ok(Node { handle: *dir, attr: self.getattr(dir)? });
        }
        let call = self.call(cred, dir)?.bare(op::LOOKUPP).bare(op::GETFH).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        results.status(op::LOOKUPP)?;
        self.node(&mut results)
    }

    pub(super) fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.create_object(cred, (dir, name), Createtype4::Dir, set)
    }

    pub(super) fn symlink(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        // An empty target or one with a NUL byte would be refused as malformed XDR.
        if target.is_empty() || target.contains(&0) {
            return Err(Status::Inval);
        }
        if target.len() > LINK_TARGET_BYTES_MAX {
            return Err(Status::NameTooLong);
        }
        self.create_object(cred, place, Createtype4::Lnk(Opaque(target)), set)
    }

    pub(super) fn mknod(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let objtype = match special {
            Special::Block(device) => Createtype4::Blk(specdata4(device)),
            Special::Character(device) => Createtype4::Chr(specdata4(device)),
            Special::Fifo => Createtype4::Fifo,
            Special::Socket => Createtype4::Sock,
        };
        self.create_object(cred, place, objtype, set)
    }

    fn create_object(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        objtype: Createtype4<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        let values = AttributeValues::to_set(set, &self.owners);
        let (objname, createattrs) = (component(name), values.fattr());
        let arguments = Create4args { objtype, objname, createattrs };
        let call = self.call(cred, dir)?.bare(op::SAVEFH).op(op::GETATTR, &OBJECT);
        let call = call.op(op::CREATE, &arguments).once();
        let reply = self.perform(finish_made(call))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        results.status(op::SAVEFH)?;
        let before = self.attr(&mut results)?;
        let made: Create4resok = results.next(op::CREATE)?;
        self.made(cred, &mut results, (before, made.cinfo))
    }

    /// Reads the results that [`finish_made`] requested.
    pub(super) fn made(
        &self,
        cred: &Cred<Disk>,
        results: &mut OpResults<'_>,
        (before, info): (Attr<Disk>, ChangeInfo4),
    ) -> Result<Made<Disk>> {
        let node = self.node(results)?;
        self.callers.using(cred, &node.handle);
        Ok(Changed { value: node, change: change_of(before, info, self.dir_after(results)) })
    }

    /// The attributes of the saved directory after the change.
    fn dir_after(&self, results: &mut OpResults<'_>) -> Option<Attr<Disk>> {
        results.status(op::RESTOREFH).ok()?;
        self.attr(results).ok()
    }

    /// Removes the name of a directory (`is_dir`) or of another object. REMOVE accepts both, so the
    /// same COMPOUND verifies the type.
    pub(super) fn remove_object(
        &self,
        cred: &Cred<Disk>,
        (dir, name): (&Handle, Name<'_>),
        is_dir: bool,
    ) -> Result<Change<Disk>> {
        let directory = AttributeValues::one(TYPE, &NfsFtype4::Dir);
        let verify = if is_dir { op::VERIFY } else { op::NVERIFY };
        let call = self.call(cred, dir)?.bare(op::SAVEFH).op(op::LOOKUP, &component(name));
        let call = call.op(verify, &directory.fattr()).bare(op::RESTOREFH);
        let call = call.op(op::GETATTR, &OBJECT).op(op::REMOVE, &component(name)).once();
        let reply = self.perform(call.op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        for operation in [op::PUTFH, op::SAVEFH, op::LOOKUP] {
            results.status(operation)?;
        }
        match results.status(verify) {
            Err(OpFailure::Status(Nfsstat4::Same)) => return Err(Status::IsDir),
            Err(OpFailure::Status(Nfsstat4::NotSame)) => return Err(Status::NotDir),
            verified => verified?,
        }
        results.status(op::RESTOREFH)?;
        let before = self.attr(&mut results)?;
        let info: ChangeInfo4 = results.next(op::REMOVE)?;
        Ok(change_of(before, info, self.attr(&mut results).ok()))
    }

    pub(super) fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let names = Rename4args { oldname: component(source.1), newname: component(target.1) };
        let call = self.call(cred, source.0)?.op(op::GETATTR, &OBJECT).bare(op::SAVEFH);
        let call =
            call.on(&self.file(target.0)?).op(op::GETATTR, &OBJECT).op(op::RENAME, &names).once();
        let call = call.op(op::GETATTR, &OBJECT).bare(op::RESTOREFH).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let source_before = self.attr(&mut results)?;
        results.status(op::SAVEFH)?;
        results.status(op::PUTFH)?;
        let target_before = self.attr(&mut results)?;
        let renamed: Rename4resok = results.next(op::RENAME)?;
        let target_after = self.attr(&mut results).ok();
        let source_after = self.dir_after(&mut results);
        let source = change_of(source_before, renamed.source_cinfo, source_after);
        Ok((source, change_of(target_before, renamed.target_cinfo, target_after)))
    }

    pub(super) fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (dir, name): (&Handle, Name<'_>),
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        let call =
            self.call(cred, node)?.bare(op::SAVEFH).on(&self.file(dir)?).op(op::GETATTR, &OBJECT);
        let call = call.op(op::LINK, &component(name)).once().op(op::GETATTR, &OBJECT);
        let reply = self.perform(call.bare(op::RESTOREFH).op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        for operation in [op::PUTFH, op::SAVEFH, op::PUTFH] {
            results.status(operation)?;
        }
        let before = self.attr(&mut results)?;
        let info: ChangeInfo4 = results.next(op::LINK)?;
        let after = self.attr(&mut results).ok();
        results.status(op::RESTOREFH)?;
        let value = self.attr(&mut results)?;
        Ok(Changed { value, change: change_of(before, info, after) })
    }
}

/// Requests handle and attributes of the new object, and the attributes of the saved directory
/// after the change.
pub(super) fn finish_made(call: CompoundCall) -> CompoundCall {
    let call = call.bare(op::GETFH).op(op::GETATTR, &OBJECT);
    call.bare(op::RESTOREFH).op(op::GETATTR, &OBJECT)
}

/// Encodes a name.
pub(super) const fn component(name: Name<'_>) -> Component4<'_> {
    Opaque(name.bytes())
}

const fn specdata4(device: Device) -> Specdata4 {
    Specdata4 { major: device.major, minor: device.minor }
}
