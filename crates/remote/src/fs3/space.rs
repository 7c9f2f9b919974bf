//! Space and properties of a file system, by FSSTAT, FSINFO and PATHCONF.

use comity_proto::nfs3::{
    Fsinfo3res, Fsinfo3resok, Fsstat3res, Pathconf3res, Pathconf3resok, fsf3, procedure,
};
use comity_vfs::{Cred, Disk, Handle, Properties, Result, Space};

use super::attributes::time;
use super::remote3::{Remote3, fh};
use super::status::ok;

/// Clone granularity in bytes. Version 3 cannot clone; this is the usual block size.
const CLONE_BYTES: u32 = 4096;

impl Remote3 {
    pub(super) fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        let file = self.file(node)?;
        let reply = self.ask_using((cred, node), procedure::FSSTAT, &fh(&file))?;
        let space = ok(reply.read::<Fsstat3res>())?;
        Ok(Space {
            bytes_total: space.tbytes,
            bytes_free: space.fbytes,
            bytes_available: space.abytes,
            files_total: space.tfiles,
            files_free: space.ffiles,
            files_available: space.afiles,
        })
    }

    pub(super) fn fsinfo(&self, node: &Handle) -> Result<Fsinfo3resok> {
        let file = self.file(node)?;
        let reply = self.ask_unnamed(node, procedure::FSINFO, &fh(&file))?;
        ok(reply.read::<Fsinfo3res>())
    }

    pub(super) fn properties(&self, node: &Handle) -> Result<Properties> {
        let file = self.file(node)?;
        let reply = self.ask_unnamed(node, procedure::PATHCONF, &fh(&file))?;
        let names: Pathconf3resok = ok(reply.read::<Pathconf3res>())?;
        let info = self.fsinfo(node)?;
        Ok(Properties {
            file_size_max: info.maxfilesize,
            name_bytes_max: names.name_max,
            links_max: names.linkmax,
            time_delta: time(info.time_delta),
            hard_links: info.properties & fsf3::LINK != 0,
            symbolic_links: info.properties & fsf3::SYMLINK != 0,
            chown_restricted: names.chown_restricted,
            case_insensitive: names.case_insensitive,
            case_preserving: names.case_preserving,
            clone_bytes: CLONE_BYTES,
            maker: None,
        })
    }
}
