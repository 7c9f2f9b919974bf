use std::sync::Arc;

use comity_proto::nfs4::{
    NfsFh4, PROGRAM, Sequence4args, Stateid4, Tag4, VERSION, operation as op, procedure,
};
use comity_vfs::OpenAccess;
use comity_xdr::{Encode, Encoder, Opaque, RecordStart, Word};

use super::owner::OpenOwner;
use crate::rpc::begin_call;
use crate::server_handle::ServerHandle;

/// The state whose stateid a READ, WRITE or SETATTR carries: a delegation, or an open of this
/// owner. The stateid is filled in when the request is sent, because it may change while the
/// request waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateUse {
    /// The file.
    pub(crate) file: ServerHandle,
    /// The open-owner.
    pub(crate) owner: Arc<OpenOwner>,
    /// The access that the state must include.
    pub(crate) access: OpenAccess,
    /// The purpose of the operation, which decides whether the file is opened for it.
    pub(crate) purpose: StatePurpose,
}

/// The operation for which a stateid is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatePurpose {
    /// READ or WRITE: the file is opened if it is not open.
    Data,
    /// SETATTR: the stateid of an open or delegation is sent if there is one.
    Attribute,
}

/// A stateid in a request that is filled in when the request is sent.
#[derive(Debug, Clone)]
pub(crate) struct StatePlace {
    /// Its offset in the record.
    pub(crate) at: usize,
    /// The state.
    pub(crate) state: StateUse,
    /// The stateid that was sent in the last attempt.
    pub(crate) shown: Stateid4,
}

/// A COMPOUND that is sent in a slot of a session. Its record is complete except for the xid, the
/// arguments of SEQUENCE and the stateids.
#[derive(Debug)]
pub(crate) struct CompoundRequest {
    /// The record with its mark.
    pub(crate) record: Vec<u8>,
    /// The offset of the arguments of SEQUENCE.
    pub(crate) sequence_at: usize,
    /// The stateids to fill in.
    pub(crate) places: Vec<StatePlace>,
    /// For a request that must not be executed twice: if at least this many operations have
    /// succeeded, SEQUENCE included, the request has changed something.
    pub(crate) changed_from: Option<u32>,
}

/// Builds a COMPOUND, operation by operation.
#[derive(Debug)]
pub(crate) struct CompoundCall {
    encoder: Encoder,
    start: RecordStart,
    count: Word,
    operations: u32,
    sequence_at: usize,
    places: Vec<StatePlace>,
    changed_from: Option<u32>,
}

impl CompoundCall {
    /// Begins a COMPOUND of a minor version under an AUTH_SYS credential.
    pub(crate) fn new(minorversion: u32, credential: &[u8]) -> Self {
        let (mut encoder, start, count) = begin(minorversion, credential);
        encoder.value(&op::SEQUENCE);
        let sequence_at = encoder.bytes().len();
        encoder.value(&NO_SEQUENCE);
        let (operations, places, changed_from) = (1, Vec::new(), None);
        Self { encoder, start, count, operations, sequence_at, places, changed_from }
    }

    /// Adds an operation.
    pub(crate) fn op(mut self, operation: u32, arguments: &impl Encode) -> Self {
        self.encoder.value(&operation);
        self.encoder.value(arguments);
        self.operations += 1;
        self
    }

    /// Adds an operation without arguments.
    pub(crate) fn bare(self, operation: u32) -> Self {
        self.op(operation, &())
    }

    /// Adds PUTFH.
    pub(crate) fn on(self, handle: &ServerHandle) -> Self {
        let handle: NfsFh4<'_> = Opaque(handle.bytes());
        self.op(op::PUTFH, &handle)
    }

    /// Adds an operation whose arguments begin with a stateid that is filled in later.
    pub(crate) fn stateful(
        mut self,
        operation: u32,
        state: StateUse,
        arguments: &impl Encode,
    ) -> Self {
        self.encoder.value(&operation);
        self.operations += 1;
        self.and_state(state, arguments)
    }

    /// Appends another stateid that is filled in later, and further arguments, to the last
    /// operation.
    pub(crate) fn and_state(mut self, state: StateUse, arguments: &impl Encode) -> Self {
        let (at, shown) = (self.encoder.bytes().len(), Stateid4::ANONYMOUS);
        self.places.push(StatePlace { at, state, shown });
        self.encoder.value(&shown);
        self.encoder.value(arguments);
        self
    }

    /// Marks the last operation as one that must not be executed twice.
    pub(crate) fn once(mut self) -> Self {
        self.changed_from.get_or_insert(self.operations);
        self
    }

    /// Returns the request.
    pub(crate) fn finish(self) -> CompoundRequest {
        let Self { mut encoder, start, count, operations, sequence_at, places, changed_from } =
            self;
        encoder.set(count, operations);
        encoder.end_record(start);
        let record = std::mem::take(encoder.bytes_mut());
        CompoundRequest { record, sequence_at, places, changed_from }
    }
}

/// Returns the record of a COMPOUND with one operation and no SEQUENCE.
pub(crate) fn lone_operation(
    minorversion: u32,
    credential: &[u8],
    operation: u32,
    arguments: &impl Encode,
) -> Vec<u8> {
    let (mut encoder, start, count) = begin(minorversion, credential);
    encoder.value(&operation);
    encoder.value(arguments);
    encoder.set(count, 1);
    encoder.end_record(start);
    std::mem::take(encoder.bytes_mut())
}

/// The arguments of SEQUENCE before a slot is chosen.
const NO_SEQUENCE: Sequence4args = Sequence4args {
    sessionid: [0; 16],
    sequenceid: 0,
    slotid: 0,
    highest_slotid: 0,
    cachethis: false,
};

/// Begins the record of a COMPOUND. The number of its operations is set when it is finished.
fn begin(minorversion: u32, credential: &[u8]) -> (Encoder, RecordStart, Word) {
    let (mut encoder, start) = begin_call((PROGRAM, VERSION, procedure::COMPOUND), credential);
    let tag: Tag4<'_> = Opaque(b"");
    encoder.value(&tag);
    let count = encoder.word_behind(minorversion);
    (encoder, start, count)
}

#[cfg(test)]
mod tests {
    use comity_proto::nfs4::CompoundHead;
    use comity_rpc::Call;
    use comity_xdr::Decoder;

    use super::*;

    #[test]
    fn the_places_of_a_request_are_at_their_offsets() {
        let file = ServerHandle::new(b"file").unwrap();
        let owner = Arc::new(OpenOwner { id: 1, credential: Vec::new() });
        let purpose = StatePurpose::Data;
        let state = StateUse { file, owner, access: OpenAccess::Read, purpose };
        let request = CompoundCall::new(2, b"\0\0\0\x01")
            .on(&file)
            .stateful(op::READ, state, &(7_u64))
            .once()
            .bare(op::GETATTR)
            .finish();
        let call = Call::parse(&request.record[4..]).unwrap();
        assert_eq!((call.header.program, call.header.version), (PROGRAM, 4));
        let mut decoder = Decoder::new(call.arguments);
        let head: CompoundHead<'_> = decoder.value().unwrap();
        assert_eq!((head.minorversion, head.operations), (2, 4));
        assert_eq!(decoder.value::<u32>().unwrap(), op::SEQUENCE);
        assert_eq!(request.record.len() - decoder.rest().len(), request.sequence_at);
        assert_eq!(decoder.value::<Sequence4args>().unwrap(), NO_SEQUENCE);
        assert_eq!(decoder.value::<u32>().unwrap(), op::PUTFH);
        decoder.value::<NfsFh4<'_>>().unwrap();
        assert_eq!(decoder.value::<u32>().unwrap(), op::READ);
        assert_eq!(request.record.len() - decoder.rest().len(), request.places[0].at);
        assert_eq!(request.changed_from, Some(3));
    }
}
