//! READ (RFC 1813, 3.3.6): returns bytes of a file. The backend reads them into the reply, or
//! names a range of the file that is sent by `sendfile`.

use comity_coherence::Act;
use comity_export::{Door, Node, View};
use comity_proto::nfs3::{Fattr3, Nfsstat3, PostOpAttr, Read3args};
use comity_rpc::Done;
use comity_vfs::{Data, Read, ReadInto, Result, Wire};
use comity_xdr::Encoder;

use crate::attributes::fattr3;
use crate::limits::{BY_REFERENCE_FROM_BYTES, TRANSFER_BYTES_MAX};
use crate::program::Nfs3;
use crate::reply::{Answer, fail};
use crate::request::{Request, Stop};

/// Bytes before the data: status, attributes, count, eof, and the data's length.
const HEAD_BYTES: usize = 4 + (4 + Fattr3::BYTES) + 4 + 4 + 4;

pub(super) fn read(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> std::result::Result<Answer, Stop> {
    let args = request.arguments::<Read3args<'_>>()?;
    let (view, node) = request.enter(Door::Handle(args.file.0))?;
    let start = reply.checkpoint();
    let cleared = nfs.clear(request, (&view, &node), Act::Read);
    Ok(match cleared.and_then(|_| read_into(&view, &node, &args, reply)) {
        Ok(()) => Answer::new(Done { status: 0, export: Some(view.export_id().0) }),
        Err(status) => {
            reply.rollback(start);
            fail(reply, &view, status, &nfs.beside_failure(&view, &node))
        }
    })
}

fn read_into(
    view: &View<'_>,
    node: &Node,
    args: &Read3args<'_>,
    reply: &mut Encoder,
) -> Result<()> {
    let head = reply.reserve::<{ HEAD_BYTES }>();
    let count = args.count.min(TRANSFER_BYTES_MAX);
    let by_reference_from = BY_REFERENCE_FROM_BYTES;
    let mut into = ReadInto { by_reference_from, ..ReadInto::new(reply.bytes_mut()) };
    let read = view.read(node, args.offset, count, &mut into);
    let read = read.as_ref().map_err(|status| *status)?;
    let length = read.data.length();
    if let Data::File { file, offset, length } = &read.data {
        reply.file(file.clone(), *offset, *length);
    }
    reply.pad(length as usize);
    reply.fill(head, |reply| write_head(reply, read, length));
    Ok(())
}

fn write_head(reply: &mut Encoder, read: &Read<Wire>, length: u32) {
    let file_attributes: PostOpAttr = read.attr.as_ref().map(fattr3);
    reply.value(&Nfsstat3::Ok);
    reply.value(&file_attributes);
    reply.words([length, u32::from(read.eof), length]);
}
