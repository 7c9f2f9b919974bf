use std::io::{Error, Result as IoResult};
use std::net::{IpAddr, SocketAddr};

use comity_proto::nfs4::files_layout::{FileLayout4, FileLayoutDsAddr4, MultipathList4};
use comity_proto::nfs4::{
    Bitmap4, Deviceid4, Getdeviceinfo4args, Getdeviceinfo4resok, LayoutContent4, Layoutcommit4args,
    Layoutget4args, Layoutget4resok, Layoutiomode4, Layoutreturn4, Layoutreturn4args,
    LayoutreturnFile4, Stateid4, layout_type, operation as op,
};
use comity_proto::portmap::universal_port;
use comity_xdr::{Decoder, Opaque};

use super::compound::{Compound, Reply};
use super::failure::malformed;
use super::opened::Opened;
use super::session::{Session, Wire};

/// Most bytes of a layout or of the addresses of a device that a client takes.
const BYTES_MAX: u32 = 64 << 10;
/// The fewest bytes of a file for which a layout is of use: a page of the client.
const USEFUL_BYTES: u64 = 4096;

/// A layout of a whole file, of the files layout type (RFC 8881, 13).
#[derive(Debug, Clone)]
pub struct GotLayout {
    /// The handle of the file on the metadata server.
    pub file: Vec<u8>,
    /// The stateid of the layout.
    pub stateid: Stateid4,
    /// The data servers, by the id of their set.
    pub device: Deviceid4,
    /// Bytes of a stripe unit.
    pub unit_bytes: u32,
    /// The handle of the file on each data server.
    pub handles: Vec<Vec<u8>>,
}

impl Opened {
    /// The COMPOUND that asks for a layout of the whole file.
    pub fn layout_getting(&self, iomode: Layoutiomode4) -> Compound {
        let arguments = Layoutget4args {
            signal_layout_avail: false,
            layout_type: layout_type::FILES,
            iomode,
            offset: 0,
            length: u64::MAX,
            minlength: USEFUL_BYTES,
            // A seqid of 0 means the newest version of the state (RFC 8881, 8.2.2).
            stateid: Stateid4 { seqid: 0, ..self.stateid },
            maxcount: BYTES_MAX,
        };
        Compound::on(&self.handle).with(op::LAYOUTGET, &arguments)
    }
}

impl GotLayout {
    /// Decodes the reply to [`Opened::layout_getting`].
    ///
    /// # Errors
    /// The server gave no layout, or one of another type.
    pub fn of(opened: &Opened, reply: &Reply) -> IoResult<Self> {
        let got: Layoutget4resok<'_> = reply.on_object()?.next(op::LAYOUTGET)?;
        let segment = got.layout.0.first().ok_or_else(|| Error::other("a layout of nothing"))?;
        let body: FileLayout4<'_> = Decoder::whole(segment.content.body.0).map_err(malformed)?;
        Ok(Self {
            file: opened.handle.clone(),
            stateid: got.stateid,
            device: body.deviceid,
            unit_bytes: body.stripe_unit_bytes(),
            handles: body.fh_list.0.iter().map(|handle| handle.0.to_vec()).collect(),
        })
    }

    /// The COMPOUND that returns the layout.
    pub fn returning(&self) -> Compound {
        let (offset, length, body) = (0, u64::MAX, Opaque(&[][..]));
        let file = LayoutreturnFile4 { offset, length, stateid: self.stateid, body };
        Compound::on(&self.file).with(op::LAYOUTRETURN, &returned(Layoutreturn4::File(file)))
    }

    /// The COMPOUND that tells how far the client has written (LAYOUTCOMMIT).
    pub fn committing(&self, end: u64) -> Compound {
        let arguments = Layoutcommit4args {
            offset: 0,
            length: u64::MAX,
            reclaim: false,
            stateid: self.stateid,
            last_write_offset: end.checked_sub(1),
            time_modify: None,
            layoutupdate: LayoutContent4 { layout_type: layout_type::FILES, body: Opaque(&[]) },
        };
        Compound::on(&self.file).with(op::LAYOUTCOMMIT, &arguments)
    }
}

impl<W: Wire> Session<W> {
    /// Asks for a layout of a whole file.
    ///
    /// # Errors
    /// The server gave no layout.
    pub fn layout(&mut self, opened: &Opened, iomode: Layoutiomode4) -> IoResult<GotLayout> {
        let reply = self.perform(&opened.layout_getting(iomode))?;
        GotLayout::of(opened, &reply)
    }

    /// Returns all layouts of the file system of a file.
    ///
    /// # Errors
    /// The server refused.
    pub fn return_layouts_of_file_system(&mut self, file: &[u8]) -> IoResult<()> {
        let compound = Compound::on(file).with(op::LAYOUTRETURN, &returned(Layoutreturn4::Fsid));
        self.perform(&compound).map(drop)
    }

    /// Returns the addresses of the data servers of a device, in the order of the stripe units.
    ///
    /// # Errors
    /// There is no such device, or an address of it is malformed.
    pub fn data_servers(&mut self, device: Deviceid4) -> IoResult<Vec<SocketAddr>> {
        let arguments = Getdeviceinfo4args {
            device_id: device,
            layout_type: layout_type::FILES,
            maxcount: BYTES_MAX,
            notify_types: Bitmap4::EMPTY,
        };
        let reply = self.perform(&Compound::new().with(op::GETDEVICEINFO, &arguments))?;
        let got: Getdeviceinfo4resok<'_> = reply.results().next(op::GETDEVICEINFO)?;
        let device: FileLayoutDsAddr4<'_> =
            Decoder::whole(got.device_addr.body.0).map_err(malformed)?;
        let lists = &device.multipath_ds_list.0;
        let server = |index: &u32| lists.get(*index as usize).and_then(first_address);
        let servers: Option<Vec<SocketAddr>> = device.stripe_indices.0.iter().map(server).collect();
        servers.ok_or_else(|| Error::other("a device without addresses"))
    }
}

const fn returned(layoutreturn: Layoutreturn4<'_>) -> Layoutreturn4args<'_> {
    let (layout_type, iomode) = (layout_type::FILES, Layoutiomode4::Any);
    Layoutreturn4args { reclaim: false, layout_type, iomode, layoutreturn }
}

fn first_address(list: &MultipathList4<'_>) -> Option<SocketAddr> {
    let text = str::from_utf8(list.0.first()?.addr.0).ok()?;
    let host: IpAddr = text.rsplitn(3, '.').nth(2)?.parse().ok()?;
    Some(SocketAddr::new(host, universal_port(text)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_proto::nfs4::Netaddr4;
    use comity_proto::portmap::universal_address;
    use comity_xdr::Counted;

    #[test]
    fn the_first_address_of_a_data_server_is_read() {
        for address in ["192.0.2.1:2049", "[2001:db8::1]:20490"] {
            let address: SocketAddr = address.parse().unwrap();
            let text = universal_address(address);
            let one = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(text.as_bytes()) };
            assert_eq!(first_address(&Counted(vec![one])), Some(address));
        }
        let wrong = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(b"192.0.2.1") };
        assert_eq!(first_address(&Counted(vec![wrong])), None);
        assert_eq!(first_address(&Counted(Vec::new())), None);
    }
}
