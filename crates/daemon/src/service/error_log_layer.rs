//! Logs failures of the disk for the operator: the client's user cannot repair them.

use std::path::Path;
use std::sync::Arc;

use comity_export::{Exports, RpcPeer};
use comity_proto::nfs3::Nfsstat3;
use comity_rpc::{Call, Layer, Outcome, Program};
use comity_server::LogRateLimit;
use comity_vfs::AsServer;
use comity_xdr::Encoder;
use rustix::fs::{StatVfsMountFlags, statvfs};

/// An NFS program whose disk errors are logged. Failed barriers are excluded, because the backend
/// logs them.
pub(super) struct ErrorLogLayer<P> {
    program: P,
    exports: Arc<Exports>,
}

impl<P> ErrorLogLayer<P> {
    pub(super) const fn new(program: P, exports: Arc<Exports>) -> Self {
        Self { program, exports }
    }

    #[cold]
    fn tell(&self, status: u32, export: Option<u32>) {
        static LOG: LogRateLimit = LogRateLimit::new();
        let plan = self.exports.current();
        let found = plan.exports().iter().find(|found| Some(found.id().0) == export);
        let Some(trouble) = found.and_then(|export| trouble(status, export.path())) else { return };
        LOG.say(|suppressed| tracing::error!(suppressed, "{trouble}"));
    }
}

impl<P: Program<RpcPeer>> Layer<RpcPeer> for ErrorLogLayer<P> {
    type Inner = P;

    fn inner(&self) -> &P {
        &self.program
    }

    fn answer(&self, call: &Call<'_>, visitor: &RpcPeer, reply: &mut Encoder) -> Outcome {
        let outcome = self.program.call(call, visitor, reply);
        if let Outcome::Done(done) = &outcome
            && is_of_the_disk(done.status)
        {
            self.tell(done.status, done.export);
        }
        outcome
    }
}

const IO: u32 = Nfsstat3::Io as u32;
const FULL: u32 = Nfsstat3::NoSpc as u32;
const READ_ONLY: u32 = Nfsstat3::RoFs as u32;
const STALE: u32 = Nfsstat3::Stale as u32;

const fn is_of_the_disk(status: u32) -> bool {
    matches!(status, IO | FULL | READ_ONLY | STALE)
}

/// Returns a message for the operator if a status needs one; a read-only export or a missing file
/// does not.
fn trouble(status: u32, export: &Path) -> Option<String> {
    let shown = export.display();
    let _server = AsServer::here().ok()?;
    let is_read_only =
        || statvfs(export).is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    match status {
        IO => Some(format!("the disk of {shown} fails: see the kernel's log")),
        FULL => Some(format!("the disk of {shown} is full: make room")),
        READ_ONLY if is_read_only() => {
            Some(format!("the disk of {shown} is mounted read-only: mount it read-write"))
        }
        STALE if !export.exists() => {
            Some(format!("{shown} is gone: bring it back, or take it out of the exports"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_the_disk_are_logged() {
        let here = tempfile::tempdir().unwrap();
        let gone = here.path().join("gone");
        for (status, export, expected) in [
            (IO, here.path(), Some(" fails")),
            (FULL, here.path(), Some(" is full")),
            (READ_ONLY, here.path(), None),
            (STALE, here.path(), None),
            (STALE, &gone, Some(" is gone")),
            (Nfsstat3::Acces as u32, here.path(), None),
        ] {
            let told = trouble(status, export);
            assert_eq!(told.is_some(), expected.is_some(), "{status} {told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
