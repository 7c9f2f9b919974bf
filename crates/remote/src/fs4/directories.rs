//! Delegations of directories, requested by GET_DIR_DELEGATION (RFC 8881, 18.39).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use comity_proto::nfs4::{
    GetDirDelegation4args, GetDirDelegation4res, Nfsstat4, Nfstime4, operation as op,
};
use comity_vfs::{
    Attr, DelegationNumber, DirectoryNotice, Disk, Handle, NoticedChange, NoticedObject, Result,
};

use super::attributes::OBJECT;
use super::remote4::Remote4;
use crate::compound::{CompoundReply, OpFailure};
use crate::session::{
    DirectoryTask, KINDS, OF_DIRECTORY, OF_ENTRY, ServerChange, ServerNotice, ServerObject,
    SessionAnswer, SessionRequest,
};

/// A request for a delegation under which the server notifies this client of changes by others. The
/// delays are zero: cached names must not be older than a change that this client has acknowledged.
const WITH_NOTIFICATIONS: GetDirDelegation4args = GetDirDelegation4args {
    signal_deleg_avail: false,
    notification_types: KINDS,
    child_attr_delay: Nfstime4 { seconds: 0, nseconds: 0 },
    dir_attr_delay: Nfstime4 { seconds: 0, nseconds: 0 },
    child_attributes: OF_ENTRY,
    dir_attributes: OF_DIRECTORY,
};

impl Remote4 {
    pub(super) fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        let directory = self.file(dir).ok()?;
        self.engine.with(|machine, now| machine.directory_grant(now, &directory))
    }

    /// Requests a delegation unless the client holds one, and the attributes in the same COMPOUND.
    pub(super) fn delegate_directory(
        &self,
        dir: &Handle,
    ) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        let held = self.directory_grant(dir);
        let may_ask = self.wants_delegations && !self.lacks_directories.load(Ordering::Relaxed);
        if held.is_some() || !may_ask {
            return Ok((self.getattr(dir)?, held));
        }
        let (reply, grant) = match self.ask_for_directory(dir)? {
            SessionAnswer::Delegated(reply, grant) => (reply, grant),
            _ => return Ok((self.getattr(dir)?, None)),
        };
        match self.attr_behind_grant(&reply) {
            Ok(attr) => Ok((attr, grant)),
            Err(_) => Ok((self.getattr(dir)?, grant)),
        }
    }

    /// The next change of a delegated directory by another client.
    pub(super) fn next_notice(&self) -> Option<DirectoryNotice> {
        // Skip directories whose handles this mount does not know.
        std::iter::from_fn(|| self.engine.with(|machine, _| machine.next_notice()))
            .find_map(|notice| self.directory_notice(notice))
    }

    fn directory_notice(&self, notice: ServerNotice) -> Option<DirectoryNotice> {
        let ServerNotice { directory, grant, change, after } = notice;
        let dir = self.handles.handle(directory.bytes()).ok()?;
        let change = match change {
            ServerChange::Added { name, object } => {
                NoticedChange::Added { name, object: self.noticed(&object) }
            }
            ServerChange::Attributes => NoticedChange::Attributes,
            ServerChange::Removed { name } => NoticedChange::Removed { name },
            ServerChange::Renamed { from, name, object } => {
                NoticedChange::Renamed { from, name, object: self.noticed(&object) }
            }
        };
        Some(DirectoryNotice { dir, grant, change, after })
    }

    fn noticed(&self, object: &ServerObject) -> NoticedObject {
        let node = object.handle.and_then(|handle| self.handles.handle(handle.bytes()).ok());
        NoticedObject { node, fileid: object.fileid }
    }

    fn ask_for_directory(&self, dir: &Handle) -> Result<SessionAnswer> {
        let directory = self.file(dir)?;
        let owner = self.callers.who_used(dir).unwrap_or_else(|| Arc::clone(&self.owner));
        let call = self.call_on(&owner, &directory);
        let call = call.op(op::GET_DIR_DELEGATION, &WITH_NOTIFICATIONS).once();
        let request = call.op(op::GETATTR, &OBJECT).finish();
        let bytes = request.record.len();
        self.ask(bytes, SessionRequest::Delegate(DirectoryTask { directory, owner }, request))
    }

    /// Reads the attributes after GET_DIR_DELEGATION. A server without this operation is not asked
    /// again.
    fn attr_behind_grant(&self, reply: &CompoundReply) -> Result<Attr<Disk>> {
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let granted = results.next::<GetDirDelegation4res>(op::GET_DIR_DELEGATION);
        if let Err(OpFailure::Status(Nfsstat4::NotSupp | Nfsstat4::OpIllegal)) = granted {
            self.lacks_directories.store(true, Ordering::Relaxed);
        }
        granted?;
        self.attr(&mut results)
    }
}
