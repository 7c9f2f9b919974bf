//! The headers of calls and replies, word by word (RFC 5531, 9; RFC 9289, 4.1).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use comity_rpc::{
    AuthStat, AuthSys, Call, CallHeader, Flavor, OpaqueAuth, ReplyVerifier, Unparsed, accepted,
    denied, network_of,
};
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};
use proptest::collection::vec;
use proptest::prelude::*;

fn words(write: impl FnOnce(&mut Encoder)) -> Vec<u32> {
    let mut encoder = Encoder::new();
    write(&mut encoder);
    let mut decoder = Decoder::new(encoder.bytes());
    std::iter::from_fn(|| decoder.value().ok()).collect()
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}

#[test]
fn an_empty_verifier_is_two_words() {
    let none = &ReplyVerifier::Empty;
    assert_eq!(words(|reply| accepted::success(reply, 9, none)), [9, 1, 0, 0, 0, 0]);
    assert_eq!(words(|reply| accepted::prog_unavail(reply, 9, none)), [9, 1, 0, 0, 0, 1]);
    let mismatch = words(|reply| accepted::prog_mismatch(reply, 9, none, 3, 4));
    assert_eq!(mismatch, [9, 1, 0, 0, 0, 2, 3, 4]);
    assert_eq!(words(|reply| accepted::proc_unavail(reply, 9, none)), [9, 1, 0, 0, 0, 3]);
    assert_eq!(words(|reply| accepted::garbage_args(reply, 9, none)), [9, 1, 0, 0, 0, 4]);
    assert_eq!(words(|reply| accepted::system_err(reply, 9, none)), [9, 1, 0, 0, 0, 5]);
}

#[test]
fn the_answer_to_a_probe_for_tls_can_be_written() {
    let verifier = ReplyVerifier::filled(Flavor::NONE, b"STARTTLS").unwrap();
    let [start, tls] = [u32::from_be_bytes(*b"STAR"), u32::from_be_bytes(*b"TTLS")];
    let written = words(|reply| accepted::success(reply, 9, &verifier));
    assert_eq!(written, [9, 1, 0, 0, 8, start, tls, 0]);
}

#[test]
fn denials_name_the_versions_or_the_reason() {
    assert_eq!(words(|reply| denied::rpc_mismatch(reply, 9)), [9, 1, 1, 0, 2, 2]);
    let reasons = [
        (AuthStat::BadCred, 1),
        (AuthStat::RejectedCred, 2),
        (AuthStat::BadVerf, 3),
        (AuthStat::RejectedVerf, 4),
        (AuthStat::TooWeak, 5),
        (AuthStat::InvalidResp, 6),
        (AuthStat::Failed, 7),
    ];
    for (reason, number) in reasons {
        assert_eq!(words(|reply| denied::auth_error(reply, 9, reason)), [9, 1, 1, 1, number]);
    }
}

proptest! {
    #[test]
    fn a_verifier_is_read_back_as_it_was_set(
        flavor in any::<u32>(),
        body in vec(any::<u8>(), 0..=400),
        xid in any::<u32>(),
    ) {
        let verifier = ReplyVerifier::filled(Flavor(flavor), &body).unwrap();
        let mut encoder = Encoder::new();
        accepted::success(&mut encoder, xid, &verifier);
        let mut decoder = Decoder::new(encoder.bytes());
        let head: [u32; 3] = std::array::from_fn(|_| decoder.value().unwrap());
        prop_assert_eq!(head, [xid, 1, 0]);
        let read: OpaqueAuth<'_> = decoder.value().unwrap();
        prop_assert_eq!((read.flavor, read.body.0), (Flavor(flavor), &body[..]));
        prop_assert_eq!(decoder.value::<u32>().unwrap(), 0);
        prop_assert!(decoder.rest().is_empty());
    }

    #[test]
    fn a_call_is_read_back_as_it_was_written(
        numbers in any::<[u32; 4]>(),
        credential in (any::<u32>(), vec(any::<u8>(), 0..=400)),
        proof in (any::<u32>(), vec(any::<u8>(), 0..=400)),
        arguments in vec(any::<u8>(), 0..100),
    ) {
        let auth = |(flavor, body): &(u32, Vec<u8>)| (Flavor(*flavor), body.clone());
        let ((flavor, body), (proof_flavor, proof_body)) = (auth(&credential), auth(&proof));
        let [xid, program, version, procedure] = numbers;
        let header = CallHeader {
            xid,
            program,
            version,
            procedure,
            credential: OpaqueAuth { flavor, body: Opaque(&body) },
            verifier: OpaqueAuth { flavor: proof_flavor, body: Opaque(&proof_body) },
        };
        let record = [encoded(&header), arguments.clone()].concat();
        let call = Call::parse(&record).unwrap();
        prop_assert_eq!((call.header, call.arguments), (header, &arguments[..]));
        let end = record.len() - arguments.len();
        for cut in 12..end {
            let told = Call::parse(&record[..cut]);
            let is_told = matches!(told, Err(Unparsed::Header { xid: of, .. }) if of == xid);
            prop_assert!(is_told, "cut at {}: {:?}", cut, told);
        }
    }

    #[test]
    fn random_bytes_are_a_call_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        match Call::parse(&bytes) {
            Ok(call) => prop_assert!(call.arguments.len() + 40 <= bytes.len()),
            Err(Unparsed::NotACall) => {}
            Err(Unparsed::RpcVersion { version, .. }) => prop_assert_ne!(version, 2),
            Err(Unparsed::Header { xid, .. }) => {
                prop_assert_eq!(&xid.to_be_bytes()[..], &bytes[..4]);
            }
        }
    }

    #[test]
    fn an_ipv4_address_is_a_network_of_its_own(address in any::<[u8; 4]>()) {
        let address = std::net::IpAddr::from(address);
        prop_assert_eq!(network_of(address), address);
    }

    #[test]
    fn an_ipv6_network_is_its_first_64_bits(bits in any::<u128>(), host in any::<u64>()) {
        let address = std::net::Ipv6Addr::from_bits(bits);
        prop_assume!(address.to_ipv4_mapped().is_none());
        let neighbour = std::net::Ipv6Addr::from_bits(bits >> 64 << 64 | u128::from(host));
        prop_assume!(neighbour.to_ipv4_mapped().is_none());
        prop_assert_eq!(network_of(address.into()), network_of(neighbour.into()));
    }
}

#[test]
fn a_credential_of_seventeen_groups_is_malformed() {
    let credential = |groups: u32| {
        let gids = (0..groups).collect::<Vec<_>>();
        let mut encoder = Encoder::new();
        encoder.words([1]);
        encoder.opaque(b"host");
        encoder.words([1000, 1000, groups]);
        gids.iter().for_each(|gid| encoder.value(gid));
        encoder.bytes().to_vec()
    };
    let sixteen = credential(16);
    let read: AuthSys<'_> = Decoder::whole(&sixteen).unwrap();
    let Counted(gids) = &read.gids;
    assert_eq!((read.machine_name.0, gids.len()), (&b"host"[..], 16));
    assert!(Decoder::whole::<AuthSys<'_>>(&credential(17)).is_err());
}
