use comity_vfs::limits::XATTR_BYTES_MAX;
use comity_vfs::{Acl, AclKind, Change, Cred, Disk, FileType, Handle, Result, Status};
use rustix::fs::{XattrFlags, getxattr, removexattr, setxattr};
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::handles::open_handle::link_of;
use crate::posix_acl::{compose, name, parse};

impl Passthrough {
    /// See [`comity_vfs::Fs::getacl`].
    pub(crate) fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        let (node, _) = self.look(node)?;
        if node.kind == FileType::Symlink {
            return Err(Status::NotSupp);
        }
        self.identity.server()?;
        let mut value = vec![0; XATTR_BYTES_MAX];
        match getxattr(link_of(node.fd()), name(kind), &mut value[..]) {
            Ok(length) => parse(&value[..length]).map(Some),
            Err(Errno::NODATA) => Ok(None),
            Err(errno) => Err(status(errno)),
        }
    }

    /// See [`comity_vfs::Fs::setacl`].
    pub(crate) fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        acl.map_or(Ok(()), Acl::check)?;
        let acl = acl.map(compose);
        self.change_attributes((cred, Status::NotSupp), node, |node| {
            let link = link_of(node.fd());
            if kind == AclKind::Default && node.kind != FileType::Directory {
                return Err(Errno::INVAL);
            }
            match &acl {
                Some(acl) => setxattr(link, name(kind), acl, XattrFlags::empty()),
                None => match removexattr(link, name(kind)) {
                    Err(Errno::NODATA) => Ok(()),
                    outcome => outcome,
                },
            }
        })
    }
}
