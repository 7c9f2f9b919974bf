//! Extended attributes (RFC 8276).

use comity_proto::nfs4::{
    ChangeInfo4, Listxattrs4args, Listxattrs4resok, Setxattr4args, SetxattrOption4, Xattrkey4,
    Xattrvalue4, operation as op,
};
use comity_vfs::limits::XATTR_BYTES_MAX;
use comity_vfs::{Change, Cred, Disk, Handle, Name, Result, Status, XattrMode};
use comity_xdr::Opaque;

use super::attributes::OBJECT;
use super::change::change_of;
use super::remote4::Remote4;
use crate::limits::{LISTING_BYTES, XATTR_NAMES_MAX};

impl Remote4 {
    pub(super) fn getxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
    ) -> Result<Vec<u8>> {
        self.needs_minor_2()?;
        let reply = self.perform(self.call(cred, node)?.op(op::GETXATTR, &key(name)))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        Ok(results.next::<Xattrvalue4<'_>>(op::GETXATTR)?.0.to_vec())
    }

    pub(super) fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (name, value): (Name<'_>, Option<&[u8]>),
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        self.needs_minor_2()?;
        if value.is_some_and(|value| value.len() > XATTR_BYTES_MAX) {
            return Err(Status::XattrTooBig);
        }
        let call = self.call(cred, node)?.op(op::GETATTR, &OBJECT);
        let (operation, call) = match value {
            Some(value) => {
                let arguments =
                    Setxattr4args { option: option(mode), key: key(name), value: Opaque(value) };
                (op::SETXATTR, call.op(op::SETXATTR, &arguments))
            }
            None => (op::REMOVEXATTR, call.op(op::REMOVEXATTR, &key(name))),
        };
        let reply = self.perform(call.once().op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let before = self.attr(&mut results)?;
        let info: ChangeInfo4 = results.next(operation)?;
        Ok(change_of(before, info, self.attr(&mut results).ok()))
    }

    pub(super) fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        self.needs_minor_2()?;
        let (mut names, mut cookie) = (Vec::new(), 0);
        loop {
            let arguments = Listxattrs4args { cookie, maxcount: LISTING_BYTES };
            let reply = self.perform(self.call(cred, node)?.op(op::LISTXATTRS, &arguments))?;
            let mut results = reply.results();
            results.status(op::PUTFH)?;
            let page: Listxattrs4resok<'_> = results.next(op::LISTXATTRS)?;
            let is_empty = page.names.0.is_empty();
            names.extend(page.names.0.into_iter().map(|name| name.0.into()));
            if page.eof {
                return Ok(names);
            }
            if is_empty || names.len() > XATTR_NAMES_MAX {
                return Err(Status::Io);
            }
            cookie = page.cookie;
        }
    }

    /// Fails with `NotSupp` if the minor version is below 2.
    pub(super) const fn needs_minor_2(&self) -> Result<()> {
        if self.minor >= 2 { Ok(()) } else { Err(Status::NotSupp) }
    }
}

const fn key(name: Name<'_>) -> Xattrkey4<'_> {
    Opaque(name.bytes())
}

const fn option(mode: XattrMode) -> SetxattrOption4 {
    match mode {
        XattrMode::Either => SetxattrOption4::Either,
        XattrMode::Create => SetxattrOption4::Create,
        XattrMode::Replace => SetxattrOption4::Replace,
    }
}
