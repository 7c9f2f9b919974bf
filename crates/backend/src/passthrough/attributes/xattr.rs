use std::ffi::CString;

use comity_vfs::limits::{NAME_BYTES_MAX, XATTR_BYTES_MAX};
use comity_vfs::{Change, Cred, Disk, FileType, Handle, Name, Result, Status, XattrMode};
use rustix::fs::{XattrFlags, getxattr, listxattr, removexattr, setxattr};
use rustix::io::Errno;

use super::attr::attr;
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::access::access_cache::Rights;
use crate::passthrough::handles::node::Node;
use crate::passthrough::handles::open_handle::link_of;

/// The prefix of user attributes: only these are shown, without the prefix.
const USER: &[u8] = b"user.";

impl Passthrough {
    /// See [`comity_vfs::Fs::getxattr`].
    pub(crate) fn getxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
    ) -> Result<Vec<u8>> {
        let node = self.bearer(cred, node)?.ok_or(Status::NoXattr)?;
        self.identity.caller(cred)?;
        let mut value = vec![0; XATTR_BYTES_MAX];
        let length =
            getxattr(link_of(node.fd()), prefixed(name)?, &mut value[..]).map_err(status)?;
        value.truncate(length);
        value.shrink_to_fit();
        Ok(value)
    }

    /// See [`comity_vfs::Fs::setxattr`].
    pub(crate) fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        let name = prefixed(name)?;
        if value.is_some_and(|value| value.len() > XATTR_BYTES_MAX) {
            return Err(Status::XattrTooBig);
        }
        self.change_attributes((cred, Status::Perm), node, |node| {
            let link = link_of(node.fd());
            match value {
                Some(value) => setxattr(link, &name, value, flags(mode)),
                None => removexattr(link, &name),
            }
        })
    }

    /// See [`comity_vfs::Fs::listxattr`].
    pub(crate) fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        let Some(node) = self.bearer(cred, node)? else { return Ok(Vec::new()) };
        self.identity.caller(cred)?;
        let mut names = vec![0; XATTR_BYTES_MAX];
        let length = listxattr(link_of(node.fd()), &mut names[..]).map_err(status)?;
        names.truncate(length);
        let ours = names.split(|byte| *byte == 0).filter_map(|name| name.strip_prefix(USER));
        Ok(ours.map(Box::from).collect())
    }

    /// Changes attributes of a node under the caller's identity; returns the node's attributes
    /// before and after. A node that cannot have extended attributes is refused with `refusal`.
    pub(crate) fn change_attributes(
        &self,
        (cred, refusal): (&Cred<Disk>, Status),
        node: &Handle,
        work: impl FnOnce(&Node) -> std::result::Result<(), Errno>,
    ) -> Result<Change<Disk>> {
        let node = self.node(node)?;
        let held = node.hold_patiently()?;
        let writing = self.begin_write(&node);
        let stat = self.stat(&node)?;
        if !bears(&node) {
            return Err(refusal);
        }
        self.identity.caller(cred)?;
        let outcome = work(&node).map_err(status);
        node.barrier.changed_attributes();
        let before = writing.is_alone().then(|| attr(&node.mount, &stat));
        let change = self.since(&node, before);
        drop(held);
        outcome.map(|()| change)
    }

    /// Returns a node whose extended attributes may be read, if it can have any.
    fn bearer(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Option<std::sync::Arc<Node>>> {
        let (node, stat) = self.look(node)?;
        if !bears(&node) {
            return Ok(None);
        }
        let rights = self.rights(cred, &node, &stat, Rights::READ)?;
        if rights == Rights::READ { Ok(Some(node)) } else { Err(Status::Acces) }
    }
}

/// Only files and directories have user attributes (xattr(7)).
const fn bears(node: &Node) -> bool {
    matches!(node.kind, FileType::Regular | FileType::Directory)
}

fn prefixed(name: Name<'_>) -> Result<CString> {
    // The kernel would return ERANGE, as for values.
    if USER.len() + name.bytes().len() > NAME_BYTES_MAX {
        return Err(Status::NameTooLong);
    }
    CString::new([USER, name.bytes()].concat()).map_err(|_| Status::Inval)
}

fn flags(mode: XattrMode) -> XattrFlags {
    match mode {
        XattrMode::Either => XattrFlags::empty(),
        XattrMode::Create => XattrFlags::CREATE,
        XattrMode::Replace => XattrFlags::REPLACE,
    }
}
