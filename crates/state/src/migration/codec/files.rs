//! Files with their queues.

use std::time::Duration;

use comity_xdr::{Decoder, Encoder, Malformed};

use super::value::{Field, fields};
use crate::{ByteRange, ClientId, ExportedFile, ExportedWait, FileKey, LockType, Result};

fields!(ExportedFile {
    key: FileKey,
    by_many_exports: bool,
    layout_rest: Duration,
    resting: Vec<(ClientId, Duration)>,
    waits: Vec<ExportedWait>,
});

fields!(ExportedWait {
    client: ClientId,
    owner: u32,
    range: ByteRange,
    kind: LockType,
    offered: bool,
    waited: Duration,
    left: Duration,
});
