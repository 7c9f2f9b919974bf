//! Files on data servers, as the metadata server and the data servers meet them.

use std::net::SocketAddr;
use std::sync::Arc;

use comity_grants::Operation;
use comity_vfs::{
    Attr, DeviceId, Distribution, FileKey, LayoutKind, Placement, Result, Status, Threshold, Wire,
};

use super::{Clearance, Node, Outside, View};
use crate::{Export, Plan, RpcPeer};

impl<'a> View<'a> {
    /// Lets in a client of the metadata server by the handle of its layout. Neither its address nor
    /// its credential counts: the metadata server has judged them.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if the handle is of no layout, or of another data server;
    /// [`Status::Stale`] if the layout was revoked. PUTFH may not answer `NFS4ERR_PNFS_NO_LAYOUT`
    /// (RFC 8881, 15.2); a Linux client destroys the layout for either error, and goes on through
    /// the metadata server.
    #[inline(never)]
    pub(super) fn approach_by_layout(plan: &'a Plan, sealed: &[u8]) -> Result<(Self, Outside)> {
        let layouts = plan.layouts().ok_or(Status::BadHandle)?;
        let layout = layouts.open(sealed)?;
        let (id, handle) = plan.key().open(layout.own)?;
        let caller = layouts.caller(id, layout.writes).ok_or(Status::Stale)?;
        let passed = layouts.pass(&caller, (&handle, &layout))?;
        Ok((Self { passed: Some(passed), ..Self::of(plan, caller) }, Outside::new(handle)))
    }
}

impl View<'_> {
    /// Returns whether a layout is all that lets the caller in. The stateids that it shows are
    /// those of the metadata server.
    #[must_use]
    pub fn is_by_layout(&self) -> bool {
        self.resolved.is_by_layout()
    }

    /// The kind of layouts of the export's files; none if the export has all bytes itself.
    #[must_use]
    pub fn layout_kind(&self) -> Option<LayoutKind> {
        self.fs().placement().map(Placement::layout_kind)
    }

    /// The stripe unit of new files in bytes; none if the export has all bytes itself.
    #[must_use]
    pub fn stripe_unit_bytes(&self) -> Option<u32> {
        self.fs().placement().map(Placement::unit_bytes)
    }

    /// The sizes below which clients should use the metadata server; none if the export has all
    /// bytes itself, or sets no such size.
    #[must_use]
    pub fn threshold(&self) -> Option<Threshold> {
        let threshold = self.fs().placement().map(Placement::threshold);
        threshold.filter(|threshold| *threshold != Threshold::default())
    }

    /// Returns the distribution of a file over data servers, for a caller whose rights to the file
    /// were checked; none if it does not lie there.
    ///
    /// # Errors
    /// [`Status::RoFs`] for writing where the export is read-only; [`Status`].
    pub fn distribution(&self, node: &Node, writes: bool) -> Result<Option<Distribution>> {
        let class = if writes { Operation::Write } else { Operation::Read };
        let at = self.gate(node, class)?;
        let placement = at.fs.placement();
        placement.map_or(Ok(None), |placement| placement.distribution(node.handle(), writes))
    }

    /// Returns whether all data servers of a distribution may still be used. See
    /// [`Placement::is_current`].
    #[must_use]
    pub fn is_current(&self, node: &Node, distribution: &Distribution) -> bool {
        let placement = self.fs().placement();
        placement.is_some_and(|placement| placement.is_current(node.handle(), distribution))
    }

    /// Notes an error that a client with a layout has met at a data server. See
    /// [`Placement::note_mirror_error`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn note_mirror_error(&self, node: &Node, device: &DeviceId) -> Result<()> {
        let at = self.gate(node, Operation::Look)?;
        let placement = at.fs.placement().ok_or(Status::NotSupp)?;
        placement.note_mirror_error(node.handle(), device)
    }

    /// Notes an error of a read that a client with a layout has met at a data server. See
    /// [`Placement::note_mirror_read_error`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn note_mirror_read_error(
        &self,
        node: &Node,
        device: &DeviceId,
        range: (u64, u64),
    ) -> Result<()> {
        let at = self.gate(node, Operation::Look)?;
        let placement = at.fs.placement().ok_or(Status::NotSupp)?;
        placement.note_mirror_read_error(node.handle(), device, range)
    }

    /// Notes what the caller has written to data servers. See [`Placement::note_written`].
    ///
    /// # Errors
    /// [`Status`].
    pub fn note_written(
        &self,
        cleared: Clearance<'_>,
        node: &Node,
        end: Option<u64>,
    ) -> Result<Attr<Wire>> {
        let at = self.gate(node, Operation::Write)?;
        let placement = at.fs.placement().ok_or(Status::NotSupp)?;
        let noted = placement.note_written(node.handle(), end);
        Ok(self.attr_out(&self.noting(cleared, node, noted)?))
    }
}

impl Plan {
    /// Returns whether the server is a data server.
    #[must_use]
    pub const fn stores_data(&self) -> bool {
        self.layouts().is_some()
    }

    /// Returns whether files of some export lie on data servers.
    #[must_use]
    pub fn has_placement(&self) -> bool {
        self.exports().iter().any(|export| export.fs().placement().is_some())
    }

    /// The addresses of the data servers of a device, if it belongs to an export with layouts of
    /// this kind that is offered to the peer.
    #[must_use]
    pub fn device(
        &self,
        visitor: &RpcPeer,
        (kind, device): (LayoutKind, &DeviceId),
    ) -> Option<Vec<SocketAddr>> {
        let offered = self.exports().iter().filter(|export| export.judge(visitor).is_ok());
        let placements = offered.filter_map(|export| export.fs().placement());
        placements.filter(|it| it.layout_kind() == kind).find_map(|it| it.device(device))
    }

    /// The kind of layouts of a file; none if its export has all bytes itself, or is gone.
    #[must_use]
    pub fn layout_kind(&self, file: &FileKey) -> Option<LayoutKind> {
        self.export_of(file)?.fs().placement().map(Placement::layout_kind)
    }

    /// The numbers of the exports with layouts of another kind.
    #[must_use]
    pub fn exports_of_other_layouts(&self, kind: LayoutKind) -> Vec<u32> {
        let is_other = |export: &&Arc<Export>| {
            let placement = export.fs().placement();
            placement.is_some_and(|placement| placement.layout_kind() != kind)
        };
        self.exports().iter().filter(is_other).map(|export| export.id().0).collect()
    }

    /// Returns the files of which a mirror was found broken; see
    /// [`Placement::poll_broken_mirror`].
    pub fn broken_mirrors(&self) -> impl Iterator<Item = FileKey> {
        self.exports().iter().flat_map(|export| {
            let placement = export.fs().placement();
            let broken = std::iter::from_fn(move || placement?.poll_broken_mirror());
            broken.map(|handle| export.key(&handle))
        })
    }

    /// See [`Placement::layouts_recalled`].
    pub fn layouts_recalled(&self, file: &FileKey, done: bool) {
        let export = self.export_of(file);
        let placement = export.and_then(|export| export.fs().placement());
        placement.into_iter().for_each(|it| it.layouts_recalled(&file.handle, done));
    }
}
