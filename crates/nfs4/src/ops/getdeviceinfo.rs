//! GETDEVICEINFO (RFC 8881, 18.40): the addresses of the data servers of a layout. The server sends
//! no notifications about devices: other data servers are another device.

use std::net::SocketAddr;

use comity_proto::nfs4::files_layout::{FileLayoutDsAddr4, MultipathList4};
use comity_proto::nfs4::{
    Bitmap4, Getdeviceinfo4args, Getdeviceinfo4resok, LayoutContent4, Netaddr4, Nfsstat4,
};
use comity_proto::portmap::universal_address;
use comity_vfs::LayoutKind;
use comity_xdr::{Counted, Decoder, Encoder, Opaque, encoded};

use super::flexible_files;
use crate::compound::Compound;
use crate::layout_kind::kind_of;
use crate::stop::Stop;

/// Bytes of the result before the body: the type and the length of the body.
const HEAD_BYTES: usize = 4 + 4;

pub(super) fn getdeviceinfo(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Getdeviceinfo4args = args.value()?;
    let kind = kind_of(args.layout_type)?;
    let servers = compound.plan.device(compound.visitor, (kind, &args.device_id));
    let servers = servers.ok_or(Nfsstat4::NoEnt)?;
    let body = match kind {
        LayoutKind::Files => files_body(&servers),
        LayoutKind::FlexibleFiles => flexible_files::device_body(&servers),
    };
    let bytes = body.len() + HEAD_BYTES;
    // Zero asks for no information but notifications (RFC 8881, 18.40.3).
    if args.maxcount > 0 && bytes > args.maxcount as usize {
        reply.value(&(bytes as u32));
        return Err(Stop::Told(Nfsstat4::TooSmall));
    }
    let body = if args.maxcount == 0 { Opaque(&[]) } else { Opaque(&body[..]) };
    let device_addr = LayoutContent4 { layout_type: args.layout_type, body };
    reply.value(&Getdeviceinfo4resok { device_addr, notification: Bitmap4::EMPTY });
    Ok(())
}

fn files_body(servers: &[SocketAddr]) -> Vec<u8> {
    addresses(servers, |lists| {
        encoded(&FileLayoutDsAddr4 {
            stripe_indices: Counted((0..servers.len() as u32).collect()),
            multipath_ds_list: Counted(lists),
        })
    })
}

/// Encodes the addresses of data servers in a body.
pub(super) fn addresses(
    servers: &[SocketAddr],
    body: impl FnOnce(Vec<MultipathList4<'_>>) -> Vec<u8>,
) -> Vec<u8> {
    let addresses: Vec<String> = servers.iter().copied().map(universal_address).collect();
    let netid = |server: &SocketAddr| if server.is_ipv4() { &b"tcp"[..] } else { b"tcp6" };
    let lists = servers.iter().zip(&addresses).map(|(server, address)| {
        let (netid, addr) = (Opaque(netid(server)), Opaque(address.as_bytes()));
        Counted(vec![Netaddr4 { netid, addr }])
    });
    body(lists.collect())
}
