//! The layouts that clients get of placed files, and what administrators see of them.

use std::any::Any;
use std::net::SocketAddr;

use comity_vfs::{
    Attr, CheckedPage, ComparedRange, DataServerState, DeviceId, Disk, Distribution, Handle,
    LabelledPage, LayoutKind, MovedFile, Placement, Rebuild, RebuiltPage, Result, Status,
    StoredPage, Striping, Threshold,
};

use crate::holds::Use;
use crate::key::LayoutHandle;
use crate::placed::Placed;
use crate::record::{PlaceRecord, Spread};
use crate::sizes::SetIdBits;

impl Placement for Placed {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn layout_kind(&self) -> LayoutKind {
        self.settings.layout_kind()
    }

    fn unit_bytes(&self) -> u32 {
        self.settings.unit_bytes
    }

    fn threshold(&self) -> Threshold {
        self.settings.threshold
    }

    fn servers(&self) -> Vec<DataServerState> {
        self.files.states(|server| self.known.broken.count(server))
    }

    fn distribution(&self, node: &Handle, writes: bool) -> Result<Option<Distribution>> {
        // A client that is told the threshold asks to write when its file grows beyond.
        if writes {
            self.place_for_layout(node)?;
        }
        let Some(using) = self.using(node, Use::Change)? else { return Ok(None) };
        let record = &*using.record;
        match (record.spread, self.layout_kind()) {
            (Spread::Stripes(unit_bytes), LayoutKind::Files) => {
                self.stripes_for_client((node, record), unit_bytes, writes)
            }
            (Spread::Mirrors(_), LayoutKind::FlexibleFiles) => {
                self.mirrors_for_client((node, record), writes)
            }
            // The data servers are of another kind than when the file was made.
            _ => Ok(None),
        }
    }

    fn is_current(&self, node: &Handle, distribution: &Distribution) -> bool {
        match distribution {
            Distribution::Stripes(_) => true,
            Distribution::Mirrors(mirrors) => self.are_whole(node, mirrors),
        }
    }

    fn note_mirror_error(&self, node: &Handle, device: &DeviceId) -> Result<()> {
        self.note_error(node, device)
    }

    fn note_mirror_read_error(
        &self,
        node: &Handle,
        device: &DeviceId,
        range: (u64, u64),
    ) -> Result<()> {
        self.note_read_error(node, device, range)
    }

    fn poll_broken_mirror(&self) -> Option<Handle> {
        self.known.broken.poll()
    }

    fn layouts_recalled(&self, node: &Handle, done: bool) {
        self.known.broken.recalled(node, done);
    }

    fn fence(&self, node: &Handle) -> Result<()> {
        let turn = self.lock(node);
        // A move may have given the file other data files.
        let Some(record) = self.record_in_turn(&turn, node)? else { return Ok(()) };
        self.fence_data(&turn, (node, &record))
    }

    fn device(&self, device: &DeviceId) -> Option<Vec<SocketAddr>> {
        self.devices.addresses(device)
    }

    fn note_written(&self, node: &Handle, end: Option<u64>) -> Result<Attr<Disk>> {
        let _using = self.using(node, Use::Change)?;
        self.note(node, (end, SetIdBits::Cleared))
    }

    fn learn_size(&self, node: &Handle) -> Result<()> {
        self.extend_to_stored(node)
    }

    fn check(&self, directory: &Handle, after: u64) -> Result<CheckedPage> {
        self.check_page(directory, after)
    }

    fn compare(&self, node: &Handle, range: (u64, u64)) -> Result<Option<ComparedRange>> {
        self.compare_mirrors(node, range)
    }

    fn move_file(
        &self,
        node: &Handle,
        clear: &dyn Fn() -> Result<()>,
        copied: &dyn Fn(u64),
    ) -> Result<MovedFile> {
        self.move_file_away(node, clear, copied)
    }

    fn note_drained(&self, server: &str) -> Result<()> {
        // A move that began before may still place its file there.
        let has_ended = !self.known.holds.has_moves();
        let drained = self.files.named(server).filter(|it| it.is_draining && has_ended);
        self.known.drained.note(&drained.ok_or(Status::NoEnt)?.name);
        Ok(())
    }

    fn write_labels(&self) {
        self.write_due_labels();
    }

    fn label(&self, directory: &Handle, after: u64) -> Result<LabelledPage> {
        self.label_page(directory, after)
    }

    fn rebuild(&self, server: &str, after: u64, how: Rebuild<'_>) -> Result<RebuiltPage> {
        self.rebuild_page(server, after, how)
    }

    fn stored(&self, server: &str, after: u64) -> Result<StoredPage> {
        self.files.stored(server, after)
    }
}

impl Placed {
    /// Returns the handles of a file in stripes for a client.
    fn stripes_for_client(
        &self,
        (node, record): (&Handle, &PlaceRecord),
        unit_bytes: u32,
        writes: bool,
    ) -> Result<Option<Distribution>> {
        let Some(device) = self.devices.of(&record.servers) else { return Ok(None) };
        let seal = |(own, fence): (Box<[u8]>, u64)| {
            self.key.seal(LayoutHandle { writes, fence, own: &own })
        };
        let _turn = self.lock(node);
        let handles = self.files.own_handles(record)?.into_iter().map(seal).collect();
        Ok(Some(Distribution::Stripes(Striping { device, unit_bytes, handles })))
    }
}
