use comity_proto::nfs4::{StableHow4, Stateid4};
use comity_xdr::{Encode, Encoder};

/// The arguments of WRITE without the data, which follow the COMPOUND.
#[derive(Debug, Clone, Copy)]
pub struct WriteHead {
    /// The stateid of an open, a lock or a delegation.
    pub stateid: Stateid4,
    /// The place of the first byte in the file.
    pub offset: u64,
    /// The time by which the data must be on stable storage.
    pub stable: StableHow4,
    /// The number of bytes.
    pub length: usize,
}

impl Encode for WriteHead {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.value(&self.stateid);
        encoder.value(&self.offset);
        encoder.value(&self.stable);
        encoder.value(&(self.length as u32));
    }
}
