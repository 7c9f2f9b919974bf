//! Verbs on data. Written data is stable only after COMMIT (RFC 1813, 4.8).

use std::sync::Arc;

use comity_proto::nfs3::{
    Commit3args, Commit3res, Read3args, Read3res, StableHow, Write3args, Write3res, Write3resok,
    procedure,
};
use comity_vfs::{
    Attr, Changed, Cred, Data, Disk, FileType, Handle, Read, ReadInto, Result, Status, Written,
};
use comity_xdr::Opaque;

use super::attributes::{attr_after, change};
use super::remote3::{Remote3, fh};
use super::status::ok;
use crate::compound::OpenOwner;
use crate::unstable::{CommitTurn, KeptData};

impl Remote3 {
    /// Reads. A caller that has opened the file keeps the right to read: if the server refuses
    /// because the mode has changed since, the mount's owner reads instead.
    pub(super) fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        at: (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let caller = self.callers.using(cred, node);
        match self.read_as(&caller, node, at, into) {
            Err(Status::Acces) if into.opened => self.read_as(&self.owner, node, at, into),
            read => read,
        }
    }

    fn read_as(
        &self,
        caller: &OpenOwner,
        node: &Handle,
        (offset, count): (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.locks.check(node)?;
        let (file, count) = (self.file(node)?, count.min(self.transfer_bytes.0));
        let arguments = Read3args { file: fh(&file), offset, count };
        let reply = self.ask(caller, procedure::READ, &arguments)?;
        let read = ok(reply.read::<Read3res<'_>>())?;
        // Ignore bytes beyond the count that was asked for.
        let data = read.data.0.get(..count as usize).unwrap_or(read.data.0);
        into.bytes.extend_from_slice(data);
        let attr = match attr_after(&read.file_attributes) {
            None if !into.opened => Some(self.getattr(node)?),
            told => told,
        };
        Ok(Read { data: Data::Appended(data.len() as u32), eof: read.eof, attr })
    }

    pub(super) fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.write_as(&self.callers.using(cred, node), node, offset, data)
    }

    /// Writes for a caller that has opened the file; rights are treated as in [`Remote3::read`].
    pub(super) fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        let written = match self.write(cred, node, offset, data) {
            Err(Status::Acces) => self.write_as(&self.owner, node, offset, data),
            written => written,
        };
        written.map(|written| written.value)
    }

    fn write_as(
        &self,
        caller: &Arc<OpenOwner>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.locks.check(node)?;
        let data = data.get(..self.transfer_bytes.1 as usize).unwrap_or(data);
        self.unstable.make_room(data.len(), |node, turn| self.commit_once(node, turn))?;
        let turn = self.unstable.begin_write(node)?;
        let written = self.send_write(caller, node, (offset, data), StableHow::Unstable)?;
        let value = written.count.min(data.len() as u32);
        let data = data.get(..value as usize).unwrap_or_default();
        if written.committed == StableHow::Unstable {
            turn.keep(offset, data.to_vec(), written.verf, caller);
        } else {
            self.unstable.cut(node, (offset, offset.saturating_add(value.into())));
        }
        Ok(Changed { value, change: change(&written.file_wcc) })
    }

    fn send_write(
        &self,
        caller: &OpenOwner,
        node: &Handle,
        (offset, data): (u64, &[u8]),
        stable: StableHow,
    ) -> Result<Write3resok> {
        let (file, count) = (self.file(node)?, data.len() as u32);
        let arguments = Write3args { file: fh(&file), offset, count, stable, data: Opaque(data) };
        let reply = self.ask(caller, procedure::WRITE, &arguments)?;
        ok(reply.read::<Write3res>())
    }

    /// Commits the data of a file. A commit that timed out is repeated.
    pub(super) fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.unstable.commit(node, |turn| self.commit_once(node, turn))
    }

    /// Commits a file once. Data that the server has lost in a restart is written again.
    fn commit_once(&self, node: &Handle, turn: &CommitTurn<'_>) -> Result<Option<Attr<Disk>>> {
        let file = self.file(node)?;
        let arguments = Commit3args { file: fh(&file), offset: 0, count: 0 };
        let reply = match &turn.owner {
            Some(owner) => self.ask(owner, procedure::COMMIT, &arguments)?,
            None => self.ask_unnamed(node, procedure::COMMIT, &arguments)?,
        };
        let committed = match ok(reply.read::<Commit3res>()) {
            Ok(committed) => committed,
            Err(Status::Stale) => return self.commit_stale(node),
            Err(status) => return self.commit_without_data(node, status),
        };
        match turn.end(committed.verf)? {
            None => self.told_or_asked(node, &committed.file_wcc.after).map(Some),
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

    /// Handles an object that the server refuses to commit: changes of a directory are stable once
    /// they are answered, so for a directory this is no error.
    fn commit_without_data(&self, node: &Handle, failed: Status) -> Result<Option<Attr<Disk>>> {
        match self.getattr(node) {
            Ok(attr) if attr.file_type == FileType::Directory => Ok(Some(attr)),
            _ => Err(failed),
        }
    }

    /// Writes lost data again with FILE_SYNC.
    fn rewrite(&self, node: &Handle, mut offset: u64, piece: &KeptData) -> Result<()> {
        let mut rest = piece.data.as_slice();
        while !rest.is_empty() {
            let data = rest.get(..self.transfer_bytes.1 as usize).unwrap_or(rest);
            let written =
                self.send_write(&piece.owner, node, (offset, data), StableHow::FileSync)?;
            let count = (written.count as usize).min(data.len());
            if count == 0 || written.committed == StableHow::Unstable {
                return Err(Status::Io);
            }
            rest = rest.get(count..).unwrap_or_default();
            offset += count as u64;
        }
        Ok(())
    }
}
