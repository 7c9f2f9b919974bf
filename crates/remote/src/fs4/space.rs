//! Holes, allocation and copies (RFC 7862).

use comity_proto::nfs4::{
    Copy4resok, DataContent4, Nfsstat4, Seek4resok, StableHow4, operation as op,
};
use comity_vfs::{Change, Changed, Cred, Disk, Handle, OpenAccess, ReadInto, Result, Seek, Status};
use comity_xdr::{Encode, Encoder};

use super::attributes::OBJECT;
use super::remote4::Remote4;
use crate::compound::{CompoundCall, OpFailure};

/// A range of bytes: offset and length.
type ByteRange = (u64, u64);

impl Remote4 {
    pub(super) fn seek(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        what: Seek,
    ) -> Result<u64> {
        self.needs_minor_2()?;
        let content = match what {
            Seek::Data => DataContent4::Data,
            Seek::Hole => DataContent4::Hole,
        };
        let state = self.state(cred, node, OpenAccess::Read)?;
        let rest = XdrPair((offset, content as u32));
        let reply = self.perform(self.call(cred, node)?.stateful(op::SEEK, state, &rest))?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        match results.next::<Seek4resok>(op::SEEK) {
            Ok(found) if found.eof && what == Seek::Data => Err(Status::NoData),
            Ok(found) => Ok(found.offset),
            Err(OpFailure::Status(Nfsstat4::NxIo)) => Err(Status::NoData),
            Err(failure) => Err(failure.into()),
        }
    }

    /// Performs ALLOCATE or DEALLOCATE.
    pub(super) fn change_space(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        operation: u32,
        range: ByteRange,
    ) -> Result<Change<Disk>> {
        self.needs_minor_2()?;
        let turn = self.unstable.begin_write(node)?;
        let state = self.state(cred, node, OpenAccess::Write)?;
        let call = self.call(cred, node)?.op(op::GETATTR, &OBJECT);
        let call = call.stateful(operation, state, &XdrPair(range)).op(op::GETATTR, &OBJECT);
        let reply = self.perform(call)?;
        let mut results = reply.results();
        results.status(op::PUTFH)?;
        let before = self.attr(&mut results)?;
        results.status(operation)?;
        if operation == op::DEALLOCATE {
            self.unstable.cut(node, (range.0, range.0.saturating_add(range.1)));
        }
        drop(turn);
        Ok(Change { before: Some(before), after: self.attr(&mut results).ok() })
    }

    /// Copies within the server. The protocol refuses a range that ends after the source's end, and
    /// a copy within one file: the first is shortened, the second is done by reading and writing.
    pub(super) fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        self.needs_minor_2()?;
        if source.0 == target.0 {
            return self.copy_within(cred, source.0, (source.1, target.1), length);
        }
        match self.copy_on_server(cred, source, target, length) {
            Err(Status::Inval) => {
                let left = self.getattr(source.0)?.size.saturating_sub(source.1);
                let shorter = left.min(length);
                if shorter == length {
                    return Err(Status::Inval);
                }
                self.copy_on_server(cred, source, target, shorter)
            }
            copied => copied,
        }
    }

    fn copy_on_server(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        if length == 0 {
            // In COPY, a length of 0 means the rest of the source.
            return Ok(Changed { value: 0, change: Change::UNKNOWN });
        }
        let turn = self.unstable.begin_write(target.0)?;
        let rest = CopyRest { source: source.1, target: target.1, length };
        let call = self.between(cred, op::COPY, (source.0, target.0), &rest)?;
        let reply = self.perform(call.op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        for operation in [op::PUTFH, op::SAVEFH, op::PUTFH] {
            results.status(operation)?;
        }
        let before = self.attr(&mut results)?;
        let copied: Copy4resok = results.next(op::COPY)?;
        let change = Change { before: Some(before), after: self.attr(&mut results).ok() };
        let value = copied.response.count.min(length);
        self.unstable.cut(target.0, (target.1, target.1.saturating_add(value)));
        if copied.response.committed == StableHow4::Unstable {
            self.unstable.copied(target.0, copied.response.writeverf);
        }
        drop(turn);
        Ok(Changed { value, change })
    }

    /// Copies bytes within one file by reading and writing.
    fn copy_within(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (from, to): (u64, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        if from.abs_diff(to) < length {
            return Err(Status::Inval);
        }
        let mut bytes = Vec::new();
        let count = length.min(self.transfer_bytes.0.into()) as u32;
        self.read(cred, node, (from, count), &mut ReadInto::new(&mut bytes))?;
        let written = self.write(cred, node, to, &bytes)?;
        Ok(Changed { value: written.value.into(), change: written.change })
    }

    pub(super) fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        self.needs_minor_2()?;
        if length == 0 {
            // In CLONE, a length of 0 means the rest of the source.
            let is_empty = self.getattr(source.0)?.size == 0;
            return if is_empty { Ok(Change::UNKNOWN) } else { Err(Status::Inval) };
        }
        let turn = self.unstable.begin_write(target.0)?;
        let rest = XdrPair((source.1, XdrPair((target.1, length))));
        let call = self.between(cred, op::CLONE, (source.0, target.0), &rest)?;
        let reply = self.perform(call.op(op::GETATTR, &OBJECT))?;
        let mut results = reply.results();
        for operation in [op::PUTFH, op::SAVEFH, op::PUTFH] {
            results.status(operation)?;
        }
        let before = self.attr(&mut results)?;
        results.status(op::CLONE)?;
        self.unstable.cut(target.0, (target.1, target.1.saturating_add(length)));
        drop(turn);
        Ok(Change { before: Some(before), after: self.attr(&mut results).ok() })
    }

    /// Begins a COMPOUND with an operation from one file to another, whose arguments begin with the
    /// stateids of both.
    fn between(
        &self,
        cred: &Cred<Disk>,
        operation: u32,
        (source, target): (&Handle, &Handle),
        rest: &impl Encode,
    ) -> Result<CompoundCall> {
        let call = self.call(cred, source)?.bare(op::SAVEFH).on(&self.file(target)?);
        let call = call.op(op::GETATTR, &OBJECT);
        let from = self.state(cred, source, OpenAccess::Read)?;
        let to = self.state(cred, target, OpenAccess::Write)?;
        Ok(call.stateful(operation, from, &()).and_state(to, rest))
    }
}

/// Two values, encoded in order.
struct XdrPair<A, B>((A, B));

impl<A: Encode, B: Encode> Encode for XdrPair<A, B> {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&self.0.0);
        encoder.value(&self.0.1);
    }
}

/// The arguments of COPY after its stateids: consecutive and synchronous, within the server.
struct CopyRest {
    source: u64,
    target: u64,
    length: u64,
}

impl Encode for CopyRest {
    fn encode(&self, encoder: &mut Encoder) {
        [self.source, self.target, self.length].iter().for_each(|word| encoder.value(word));
        encoder.value(&true);
        encoder.value(&true);
        encoder.value(&0_u32);
    }
}
