use comity_proto::nfs4::{
    ClientOwner4, CompoundHead, ExchangeId4args, StateProtect4a, operation as op,
};
use comity_proto::{mount, nfs3, nfs4, portmap};
use comity_xdr::{Encoder, Opaque};

use comity_remote::rpc::{call_header, record_before};

/// The calls of strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// NULL, which every host may call.
    Null,
    ExchangeId,
    Putrootfh,
    Mnt,
    /// The portmapper's list, by TCP.
    Dump,
    /// The same by UDP, where an address is easily forged.
    DumpByUdp,
}

impl Call {
    pub(super) const ALL: [Self; 6] =
        [Self::Null, Self::ExchangeId, Self::Putrootfh, Self::Mnt, Self::Dump, Self::DumpByUdp];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::ExchangeId => "EXCHANGE_ID",
            Self::Putrootfh => "PUTROOTFH",
            Self::Mnt => "MNT",
            Self::Dump => "DUMP by TCP",
            Self::DumpByUdp => "DUMP by UDP",
        }
    }

    /// Returns whether the call goes to the portmapper.
    pub(super) const fn is_of_portmapper(self) -> bool {
        matches!(self, Self::Dump | Self::DumpByUdp)
    }

    /// The record, its mark included, as root would send it.
    pub(super) fn record(self) -> Vec<u8> {
        let compound = (nfs4::PROGRAM, nfs4::VERSION, nfs4::procedure::COMPOUND);
        let (program, arguments) = match self {
            Self::Null => ((nfs3::PROGRAM, nfs3::VERSION, nfs3::procedure::NULL), Encoder::new()),
            Self::ExchangeId => (compound, exchange_id()),
            Self::Putrootfh => (compound, one_operation(0, op::PUTROOTFH)),
            Self::Mnt => ((mount::PROGRAM, mount::VERSION, mount::procedure::MNT), path()),
            Self::Dump | Self::DumpByUdp => {
                let version = portmap::PORTMAP_VERSION;
                ((portmap::PROGRAM, version, portmap::procedure::DUMP), Encoder::new())
            }
        };
        let header = call_header(program, (0, 0));
        let mut record = record_before(&header, &(), arguments.bytes().len());
        record.extend_from_slice(arguments.bytes());
        record
    }
}

fn exchange_id() -> Encoder {
    let mut call = one_operation(1, op::EXCHANGE_ID);
    let clientowner = ClientOwner4 { verifier: *b"stranger", id: Opaque(b"a client of others") };
    let (flags, state_protect) = (0, StateProtect4a::None);
    call.value(&ExchangeId4args { clientowner, flags, state_protect, client_impl_id: None });
    call
}

fn one_operation(minorversion: u32, number: u32) -> Encoder {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations: 1 });
    call.value(&number);
    call
}

fn path() -> Encoder {
    let mut path = Encoder::new();
    path.opaque(b"/");
    path
}
