use std::ops::ControlFlow;

use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Result, Status};

use super::Ceph;
use super::attributes::vino_of;
use super::ffi::{self, ListedEntry};
use super::snapshot;

impl Ceph {
    /// See [`comity_vfs::Fs::readdir`].
    pub(super) fn list(
        &self,
        cred: &Cred<Disk>,
        (dir, cookie): (&Handle, u64),
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        let (vino, inode, attr) = self.directory(dir)?;
        if snapshot::is_of_snapshot(vino) {
            self.learn_path(vino)?;
        }
        let mut open = self.done(ffi::Listing::open(&inode, &self.perms(cred)))?;
        if cookie != 0 {
            open.seek(i64::try_from(cookie).map_err(|_| Status::BadCookie)?);
        }
        while let Some(entry) = self.done(open.next(wanted == Listed::Nodes))? {
            if matches!(entry.name(), b"." | b"..") {
                continue;
            }
            if !snapshot::may_contain(vino, vino_of(&entry.stat)) {
                return Err(Status::Stale);
            }
            if self.show(&entry, wanted, visit)?.is_break() {
                break;
            }
        }
        Ok(attr)
    }

    fn show(
        &self,
        entry: &ListedEntry<'_>,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let name = Name::new(entry.name())?;
        let fileid = snapshot::fileid(vino_of(&entry.stat));
        let node = (wanted == Listed::Nodes).then(|| self.node_of(&entry.stat).ok()).flatten();
        Ok(visit(&Listing { name, fileid, cookie: entry.position() as u64, node }))
    }
}
