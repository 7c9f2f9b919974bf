//! Files written and read in pieces of 1 MiB: at a metadata server, or at data servers as a layout
//! says.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use comity_proto::nfs4::{
    Commit4args, Createhow4, Layoutiomode4, Openflag4, Read4args, Read4resok, StableHow4, Stateid4,
    Write4resok, operation as op, share,
};
use comity_remote::nfs4::{Compound, GotLayout, Opened, Opening, Session, WriteHead, made};
use comity_remote::rpc::{Caller, caller_ids};

use super::placed_site::PlacedSite;

/// Bytes of a READ and of a WRITE, which is a stripe unit, too.
pub(super) const PIECE_BYTES: u64 = 1 << 20;

/// A client of a site.
pub(super) struct SiteClient {
    pub(super) session: Session<Caller>,
    /// The handle of the directory of small files.
    dir: Vec<u8>,
    /// Sessions with the data servers, once a layout has named them.
    stores: Vec<(SocketAddr, Session<Caller>)>,
}

/// The pieces of a file at one server.
pub(super) struct Pieces<'a> {
    pub(super) session: &'a mut Session<Caller>,
    pub(super) handle: &'a [u8],
    pub(super) stateid: Stateid4,
}

impl SiteClient {
    pub(super) fn connect(site: &PlacedSite) -> Result<Self> {
        let mut session = Session::connect(site.mds.address, caller_ids())?;
        let dir = session.mount(&site.small())?;
        Ok(Self { session, dir, stores: Vec::new() })
    }

    /// Opens a file, which is made if it does not exist.
    pub(super) fn open(&mut self, name: &str) -> Result<Opened> {
        let attributes = made(0o644, None);
        let how = Openflag4::Create(Createhow4::Unchecked(attributes.fattr()));
        let (dir, access) = (&self.dir[..], share::BOTH | share::WANT_NO_DELEG);
        Ok(self.session.open(&Opening { dir, name, owner: b"mover", how, access })?)
    }

    pub(super) fn close(&mut self, opened: &Opened) -> Result<()> {
        Ok(self.session.perform(&opened.closing()).map(drop)?)
    }

    /// Writes a file at the metadata server.
    pub(super) fn write(&mut self, opened: &Opened, bytes: u64, data: &[u8]) -> Result<()> {
        let mut file = self.at_server(opened);
        places(bytes).try_for_each(|offset| file.write(offset, data))?;
        file.commit()
    }

    /// Reads a file at the metadata server.
    pub(super) fn read(&mut self, opened: &Opened, bytes: u64) -> Result<()> {
        let mut file = self.at_server(opened);
        places(bytes).try_for_each(|offset| file.read(offset))
    }

    /// Writes a file at its data servers.
    pub(super) fn write_by_layout(
        &mut self,
        opened: &Opened,
        bytes: u64,
        data: &[u8],
    ) -> Result<()> {
        let layout = self.layout(opened, Layoutiomode4::Rw)?;
        for offset in places(bytes) {
            self.at_store(opened, &layout, store_of(&layout, offset))?.write(offset, data)?;
        }
        for at in 0..layout.handles.len() {
            self.at_store(opened, &layout, at)?.commit()?;
        }
        self.session.perform(&layout.committing(bytes))?;
        Ok(self.session.perform(&layout.returning()).map(drop)?)
    }

    /// Reads a file at its data servers.
    pub(super) fn read_by_layout(&mut self, opened: &Opened, bytes: u64) -> Result<()> {
        let layout = self.layout(opened, Layoutiomode4::Read)?;
        for offset in places(bytes) {
            self.at_store(opened, &layout, store_of(&layout, offset))?.read(offset)?;
        }
        Ok(self.session.perform(&layout.returning()).map(drop)?)
    }

    /// Gets a layout, and connects to its data servers if they are not known.
    pub(super) fn layout(&mut self, opened: &Opened, mode: Layoutiomode4) -> Result<GotLayout> {
        let layout = self.session.layout(opened, mode)?;
        ensure!(u64::from(layout.unit_bytes) == PIECE_BYTES, "another stripe unit");
        if self.stores.is_empty() {
            for address in self.session.data_servers(layout.device)? {
                self.stores.push((address, Session::connect(address, caller_ids())?));
            }
        }
        Ok(layout)
    }

    /// The addresses of the data servers that a layout has named.
    pub(super) fn store_addresses(&self) -> Vec<SocketAddr> {
        self.stores.iter().map(|(address, _)| *address).collect()
    }

    fn at_server<'a>(&'a mut self, opened: &'a Opened) -> Pieces<'a> {
        let (handle, stateid) = (&opened.handle[..], opened.stateid);
        Pieces { session: &mut self.session, handle, stateid }
    }

    fn at_store<'a>(
        &'a mut self,
        opened: &Opened,
        layout: &'a GotLayout,
        at: usize,
    ) -> Result<Pieces<'a>> {
        let (_, session) = self.stores.get_mut(at).context("a stripe without a data server")?;
        let handle = layout.handles.get(at).context("a stripe without a handle")?;
        Ok(Pieces { session, handle, stateid: opened.stateid })
    }
}

impl Pieces<'_> {
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        let (stateid, stable, length) = (self.stateid, StableHow4::Unstable, data.len());
        let head = WriteHead { stateid, offset, stable, length };
        let compound = Compound::on(self.handle).with(op::WRITE, &head);
        let reply = self.session.perform_with(&compound, data)?;
        let written: Write4resok = reply.on_object()?.next(op::WRITE)?;
        ensure!(written.count as usize == data.len(), "WRITE of {} bytes only", written.count);
        Ok(())
    }

    pub(super) fn read(&mut self, offset: u64) -> Result<()> {
        let (stateid, count) = (self.stateid, PIECE_BYTES as u32);
        let arguments = Read4args { stateid, offset, count };
        let reply = self.session.perform(&Compound::on(self.handle).with(op::READ, &arguments))?;
        let read: Read4resok<'_> = reply.on_object()?.next(op::READ)?;
        ensure!(read.data.0.len() as u64 == PIECE_BYTES, "READ of {} bytes", read.data.0.len());
        Ok(())
    }

    pub(super) fn commit(&mut self) -> Result<()> {
        let arguments = Commit4args { offset: 0, count: 0 };
        let compound = Compound::on(self.handle).with(op::COMMIT, &arguments);
        Ok(self.session.perform(&compound).map(drop)?)
    }
}

/// The data server of the stripe unit at an offset.
pub(super) fn store_of(layout: &GotLayout, offset: u64) -> usize {
    (offset / PIECE_BYTES) as usize % layout.handles.len().max(1)
}

/// The offsets of the pieces of a file.
fn places(bytes: u64) -> impl Iterator<Item = u64> {
    (0..bytes).step_by(PIECE_BYTES as usize)
}
