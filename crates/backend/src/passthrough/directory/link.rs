use std::sync::Arc;

use comity_vfs::limits::LINK_TARGET_BYTES_MAX;
use comity_vfs::{Attr, Changed, Cred, Disk, FileType, Handle, Name, Result, Status, Target};
use rustix::fs::{AtFlags, CWD, OFlags, linkat, readlinkat};

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::Node;
use crate::passthrough::handles::open_handle::link_of;
use crate::zero_name::ZeroName;

impl Passthrough {
    /// See [`comity_vfs::Fs::link`].
    pub(crate) fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        let (node, _) = self.look(node)?;
        let dir = self.directory(dir)?;
        match node.kind {
            FileType::Directory => return Err(Status::IsDir),
            _ if !Arc::ptr_eq(&node.mount, &dir.mount) => return Err(Status::XDev),
            _ => {}
        }
        let name = ZeroName::new(name);
        let ((), change) = self.change_directory(&dir, || {
            self.identity.caller(cred)?;
            let flags = AtFlags::SYMLINK_FOLLOW;
            // The link in /proc for the descriptor leads to exactly this object, even if the object
            // is a symbolic link.
            linkat(CWD, link_of(node.fd()), dir.fd(), name.as_c_str(), flags).map_err(status)
        })?;
        self.paths.learn(&node.handle, &dir.handle, name.as_c_str());
        node.barrier.changed_attributes();
        let stat = self.stat(&node)?;
        Ok(Changed { value: attr(&node.mount, &stat), change })
    }

    /// See [`comity_vfs::Fs::readlink`].
    pub(crate) fn readlink(&self, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        let (node, stat) = self.look(node)?;
        if node.kind != FileType::Symlink {
            return Err(Status::Inval);
        }
        let target = match node.target.get() {
            Some(target) => target.clone(),
            None => {
                let target = self.read_target(&node)?;
                node.target.get_or_init(|| target).clone()
            }
        };
        Ok((target, attr(&node.mount, &stat)))
    }

    /// Reads a link's target, through the mount that does not change its time of last access if
    /// there is one.
    fn read_target(&self, node: &Node) -> Result<Target> {
        self.identity.server()?;
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let room = Vec::with_capacity(LINK_TARGET_BYTES_MAX + 1);
        let target = if node.mount.is_still() {
            let still = self.with_descriptors(|| node.mount.open_still(&node.handle, flags))?;
            readlinkat(&still, c"", room)
        } else {
            readlinkat(node.fd(), c"", room)
        };
        Ok(target.map_err(status)?.into_bytes().into_boxed_slice())
    }
}
