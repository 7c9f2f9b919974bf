//! Calls as they are received.

use comity_bench::fixture_tree::CALLER;
use comity_proto::nfs3;
use comity_rpc::{AuthSys, CallHeader, Flavor, OpaqueAuth};
use comity_xdr::{Counted, Encode, Encoder, Opaque};

/// A call of NFSv3.
pub(crate) fn nfs(procedure: u32, arguments: &impl Encode) -> Vec<u8> {
    record((nfs3::PROGRAM, nfs3::VERSION, procedure), arguments)
}

/// A call as it is received, its record mark included.
pub(crate) fn record(
    (program, version, procedure): (u32, u32, u32),
    arguments: &impl Encode,
) -> Vec<u8> {
    let mut credential = Encoder::new();
    credential.value(&AuthSys {
        stamp: 0,
        machine_name: Opaque(b"comity-bench"),
        uid: CALLER,
        gid: CALLER,
        gids: Counted(vec![CALLER]),
    });
    let body = Opaque(credential.bytes());
    let credential = OpaqueAuth { flavor: Flavor::SYS, body };
    let verifier = OpaqueAuth::NONE;
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    encoder.value(&CallHeader { xid: 7, program, version, procedure, credential, verifier });
    encoder.value(arguments);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}
