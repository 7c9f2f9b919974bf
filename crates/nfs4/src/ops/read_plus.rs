//! READ_PLUS (RFC 7862, 15.10): bytes of a file, with its holes reported as holes.

use comity_export::{Node, View};
use comity_proto::nfs4::{DataContent4, Nfsstat4, Read4args};
use comity_vfs::{Attr, ReadInto, Seek, Status, Wire};
use comity_xdr::{Decoder, Encoder};

use super::read::{most, not_read};
use crate::compound::Compound;
use crate::limits::CONTENTS_MAX;
use crate::stateid::may_read;
use crate::stop::Stop;

/// Bytes of a piece before its data, and bytes of a hole: kind, offset and length.
const HEAD_BYTES: usize = 4 + 8 + 8;

pub(super) fn read_plus(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let Read4args { stateid, offset, count } = args.value()?;
    let opened = may_read(compound, &stateid)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    let attr = view.getattr(node)?;
    compound.must_be_file(attr.file_type)?;
    let pieces = if attr.used >= attr.size { 1 } else { CONTENTS_MAX };
    let most = most(compound, reply).saturating_sub(HEAD_BYTES as u32 * pieces);
    let head = reply.reserve::<8>();
    let end = offset.saturating_add(count.min(most).into()).min(attr.size);
    let mut reading = Reading { view, node, reply, opened, attr, at: offset, end, pieces: 0 };
    let read = reading.all();
    let (eof, pieces) = (reading.at >= reading.attr.size, reading.pieces);
    read.map_err(|status| not_read(compound, view, node, status))?;
    reply.fill(head, |reply| {
        reply.value(&eof);
        reply.value(&pieces);
    });
    Ok(())
}

struct Reading<'r, 'a> {
    view: &'r View<'a>,
    node: &'r Node,
    reply: &'r mut Encoder,
    opened: bool,
    attr: Attr<Wire>,
    at: u64,
    end: u64,
    pieces: u32,
}

impl Reading<'_, '_> {
    /// Reads piece after piece until the range or the number of pieces is exhausted. An empty range
    /// is read, too, because the read checks the rights.
    fn all(&mut self) -> Result<(), Status> {
        if self.at >= self.end {
            return self.data(self.at);
        }
        while self.at < self.end && self.pieces < CONTENTS_MAX {
            let data = self.next(Seek::Data)?;
            if data > self.at {
                self.hole(data);
            } else {
                let hole = self.next(Seek::Hole)?;
                self.data(hole)?;
            }
        }
        Ok(())
    }

    /// Returns the offset of the next data or hole. In a file without holes, or on a file system
    /// that does not report them, data begin at once and no hole follows.
    fn next(&self, what: Seek) -> Result<u64, Status> {
        let is_dense = self.attr.used >= self.attr.size;
        let nothing = if what == Seek::Data { self.at } else { self.end };
        if is_dense {
            return Ok(nothing);
        }
        match self.view.seek(self.node, self.at, what) {
            Ok(found) => Ok(found.clamp(self.at, self.end)),
            Err(Status::NoData) => Ok(self.end),
            Err(Status::NotSupp) => Ok(nothing),
            // SEEK checks the mode again, but a user who has opened the file may read it.
            Err(Status::Acces) if self.opened => Ok(nothing),
            Err(status) => Err(status),
        }
    }

    fn hole(&mut self, to: u64) {
        self.reply.value(&DataContent4::Hole);
        self.reply.value(&self.at);
        self.reply.value(&(to - self.at));
        (self.at, self.pieces) = (to, self.pieces + 1);
    }

    fn data(&mut self, to: u64) -> Result<(), Status> {
        let count = u32::try_from(to.saturating_sub(self.at)).unwrap_or(u32::MAX);
        self.reply.value(&DataContent4::Data);
        self.reply.value(&self.at);
        let length = self.reply.reserve::<4>();
        let opened = self.opened;
        let mut into = ReadInto { opened, ..ReadInto::new(self.reply.bytes_mut()) };
        let read = self.view.read(self.node, self.at, count, &mut into)?;
        let bytes = read.data.length();
        self.reply.pad(bytes as usize);
        self.reply.fill(length, |reply| reply.value(&bytes));
        self.at += u64::from(bytes);
        self.pieces += 1;
        if bytes < count {
            // The file was truncated during the read.
            (self.end, self.attr) = (self.at, self.view.getattr(self.node)?);
        }
        Ok(())
    }
}
