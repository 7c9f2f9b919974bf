//! Verbs on data.

use std::sync::Arc;

use comity_proto::nfs4::{
    Commit4args, Nfsstat4, Read4resok, StableHow4, Verifier4, Write4resok, operation as op,
};
use comity_vfs::{
    Attr, Change, Changed, Cred, Data, Disk, Handle, OpenAccess, Read, ReadInto, Result, Stability,
    Status, Written,
};
use comity_xdr::{Encode, Encoder};

use super::attributes::OBJECT;
use super::remote4::Remote4;
use crate::compound::{OpFailure, OpenOwner, StatePurpose, StateUse};
use crate::server_handle::ServerHandle;
use crate::unstable::{CommitTurn, KeptData};

impl Remote4 {
    /// Reads. A caller that has opened the file keeps the right to read: if the server refuses
    /// because the mode has changed since, the mount's owner reads instead.
    pub(super) fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let caller = self.callers.using(cred, node);
        match self.read_as(&caller, node, place, into) {
            Err(Status::Acces) if into.opened => self.read_as(&self.owner, node, place, into),
            read => read,
        }
    }

    fn read_as(
        &self,
        caller: &Arc<OpenOwner>,
        node: &Handle,
        (offset, count): (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let count = count.min(self.transfer_bytes.0);
        let file = self.file(node)?;
        let state = state_of(caller, &file, OpenAccess::Read);
        let call =
            self.call_on(caller, &file).stateful(op::READ, state, &ReadPlace { offset, count });
        let call = if into.opened { call } else { call.op(op::GETATTR, &OBJECT) };
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let read: Read4resok<'_> = results.next(op::READ).map_err(data_failure)?;
        // Ignore bytes beyond the count that was asked for.
        let data = read.data.0.get(..count as usize).unwrap_or(read.data.0);
        into.bytes.extend_from_slice(data);
        let attr = if into.opened { None } else { Some(self.attr(&mut results)?) };
        Ok(Read { data: Data::Appended(data.len() as u32), eof: read.eof, attr })
    }

    pub(super) fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.write_as(&self.callers.using(cred, node), node, (offset, data), UNSTABLE)
    }

    /// Writes with FILE_SYNC, unless a COMMIT must follow for earlier data of the file anyway.
    pub(super) fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        let caller = self.callers.using(cred, node);
        let stable =
            if self.unstable.awaits_commit(node) { UNSTABLE } else { StableHow4::FileSync };
        let written = self.write_as(&caller, node, (offset, data), stable)?;
        // The server may have kept the data in memory all the same.
        let is_stable = !self.unstable.awaits_commit(node);
        Ok((written, if is_stable { Stability::FileSync } else { Stability::Unstable }))
    }

    /// Writes for a caller that has opened the file; rights are treated as in [`Remote4::read`].
    pub(super) fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        let written = match self.write(cred, node, offset, data) {
            Err(Status::Acces) => self.write_as(&self.owner, node, (offset, data), UNSTABLE),
            written => written,
        };
        written.map(|written| written.value)
    }

    fn write_as(
        &self,
        caller: &Arc<OpenOwner>,
        node: &Handle,
        (offset, data): (u64, &[u8]),
        stable: StableHow4,
    ) -> Result<Written<Disk>> {
        let data = data.get(..self.transfer_bytes.1 as usize).unwrap_or(data);
        self.unstable.make_room(data.len(), |node, turn| self.commit_once(node, turn))?;
        let turn = self.unstable.begin_write(node)?;
        let (before, written, after) =
            self.send_write(caller, node, WriteRest { offset, stable, data })?;
        let value = written.count.min(data.len() as u32);
        let data = data.get(..value as usize).unwrap_or_default();
        if written.committed == UNSTABLE {
            turn.keep(offset, data.to_vec(), written.writeverf, caller);
        } else {
            self.unstable.cut(node, (offset, offset.saturating_add(value.into())));
        }
        Ok(Changed { value, change: Change { before: Some(before), after } })
    }

    /// Sends a WRITE; also returns the attributes before and after it.
    fn send_write(
        &self,
        caller: &Arc<OpenOwner>,
        node: &Handle,
        arguments: WriteRest<'_>,
    ) -> Result<(Attr<Disk>, Write4resok, Option<Attr<Disk>>)> {
        let file = self.file(node)?;
        let state = state_of(caller, &file, OpenAccess::Write);
        let call = self.call_on(caller, &file).op(op::GETATTR, &OBJECT);
        let call = call.stateful(op::WRITE, state, &arguments).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let before = self.attr(&mut results)?;
        let written: Write4resok = results.next(op::WRITE).map_err(data_failure)?;
        Ok((before, written, self.attr(&mut results).ok()))
    }

    /// Commits the data of a file. A commit that timed out is repeated.
    pub(super) fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.unstable.commit(node, |turn| self.commit_once(node, turn))
    }

    /// Commits a file once. Data that the server has lost in a restart is written again.
    fn commit_once(&self, node: &Handle, turn: &CommitTurn<'_>) -> Result<Option<Attr<Disk>>> {
        let arguments = Commit4args { offset: 0, count: 0 };
        let call = match &turn.owner {
            Some(owner) => self.call_as(owner, node)?,
            None => self.call_unnamed(node)?,
        };
        let reply = self.perform(call.op(op::COMMIT, &arguments).op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        let committed = results.status(op::PUTFH).and_then(|()| results.next(op::COMMIT));
        let verifier: Verifier4 = match committed {
            Ok(verifier) => verifier,
            // Changes of a directory are stable once they are answered.
            Err(OpFailure::Status(Nfsstat4::IsDir)) => return self.getattr(node).map(Some),
            Err(OpFailure::Status(Nfsstat4::Stale)) => return self.commit_stale(node),
            Err(failure) => return Err(failure.into()),
        };
        match turn.end(verifier)? {
            None => self.attr(&mut results).map(Some),
            Some(rewrite) => {
                rewrite.rewrite(|offset, piece| self.rewrite(node, offset, piece))?;
                self.getattr(node).map(Some)
            }
        }
    }

    /// Handles an object that the server does not know: it was removed, with which its changes are
    /// stable. A server that does not know its root either has restarted and does not serve the
    /// file system yet, so the data is kept for a later commit: the failure is not final.
    fn commit_stale(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let root = self.getattr(&self.root);
        root.map_err(|status| if status == Status::Stale { Status::Io } else { status })?;
        self.unstable.forget(node);
        Ok(None)
    }

    /// Writes lost data again with FILE_SYNC.
    fn rewrite(&self, node: &Handle, mut offset: u64, piece: &KeptData) -> Result<()> {
        let mut rest = piece.data.as_slice();
        while !rest.is_empty() {
            let data = rest.get(..self.transfer_bytes.1 as usize).unwrap_or(rest);
            let arguments = WriteRest { offset, stable: StableHow4::FileSync, data };
            let written = self.send_write(&piece.owner, node, arguments)?.1;
            let count = (written.count as usize).min(data.len());
            if count == 0 || written.committed == UNSTABLE {
                return Err(Status::Io);
            }
            rest = rest.get(count..).unwrap_or_default();
            offset += count as u64;
        }
        Ok(())
    }

    /// The state under which a caller reads or changes data of a file.
    pub(super) fn state(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        access: OpenAccess,
    ) -> Result<StateUse> {
        Ok(state_of(&self.callers.of(cred), &self.file(node)?, access))
    }
}

/// The state under which the owner of an open reads or writes.
fn state_of(owner: &Arc<OpenOwner>, file: &ServerHandle, access: OpenAccess) -> StateUse {
    let (file, owner, purpose) = (*file, Arc::clone(owner), StatePurpose::Data);
    StateUse { file, owner, access, purpose }
}

/// Converts the error of an operation on data; on a symbolic link it is `Inval`.
fn data_failure(failure: OpFailure) -> Status {
    match failure {
        OpFailure::Status(Nfsstat4::Symlink) => Status::Inval,
        failure => failure.into(),
    }
}

/// The arguments of READ after its stateid.
struct ReadPlace {
    offset: u64,
    count: u32,
}

impl Encode for ReadPlace {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&self.offset);
        encoder.value(&self.count);
    }
}

/// Data that becomes stable by COMMIT.
const UNSTABLE: StableHow4 = StableHow4::Unstable;

/// The arguments of WRITE after its stateid.
struct WriteRest<'a> {
    offset: u64,
    stable: StableHow4,
    data: &'a [u8],
}

impl Encode for WriteRest<'_> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&self.offset);
        encoder.value(&self.stable);
        encoder.opaque(self.data);
    }
}
