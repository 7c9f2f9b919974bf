//! The embedded portmapper over TCP and UDP: it answers queries and accepts no registrations.
#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use comity_proto::portmap::{self, List, Mapping, Rpcb, procedure};
use comity_rpc::{Admission, AuthStat, CallHeader, Gate, OpaqueAuth, OpenGate};
use comity_server::portmap::{Advertised, Portmapper};
use comity_xdr::{Decode, Decoder, Encode, Encoder, Opaque};

const NFS: Mapping = Mapping { program: 100_003, version: 3, protocol: portmap::TCP, port: 20_049 };
const HEADER_BYTES: usize = 24;

fn portmapper() -> Portmapper<OpenGate> {
    portmapper_behind(OpenGate)
}

fn portmapper_behind<G: Gate<IpAddr> + Clone + 'static>(gate: G) -> Portmapper<G> {
    let address = "127.0.0.1:20049".parse().unwrap();
    let offered = [100_003, 100_005]
        .map(|program| Advertised { program, version: 3, protocol: portmap::TCP, address })
        .to_vec();
    Portmapper::start(vec!["127.0.0.1:0".parse().unwrap()], &offered, &gate).unwrap()
}

fn call(version: u32, procedure: u32, argument: &impl Encode) -> Vec<u8> {
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let program = portmap::PROGRAM;
    let mut encoder = Encoder::new();
    encoder.value(&CallHeader { xid: 9, program, version, procedure, credential, verifier });
    encoder.value(argument);
    encoder.bytes().to_vec()
}

fn over_udp(to: SocketAddr, call: &[u8]) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket.send_to(call, to).unwrap();
    let mut reply = vec![0; 4096];
    let length = socket.recv(&mut reply).unwrap();
    reply.truncate(length);
    assert_eq!(reply[..4], [0, 0, 0, 9]);
    reply
}

fn over_tcp(to: SocketAddr, call: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    let mark = (call.len() as u32 | 1 << 31).to_be_bytes();
    stream.write_all(&[&mark, call].concat()).unwrap();
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).unwrap();
    let mut reply = vec![0; (u32::from_be_bytes(mark) & !(1 << 31)) as usize];
    stream.read_exact(&mut reply).unwrap();
    reply
}

fn results<'a, T: Decode<'a>>(reply: &'a [u8]) -> T {
    Decoder::whole(&reply[HEADER_BYTES..]).unwrap()
}

#[test]
fn ports_and_addresses_are_answered_and_registrations_refused() {
    let portmapper = portmapper();
    let to = portmapper.addresses()[0];
    for transport in [over_udp, over_tcp] {
        let port = transport(to, &call(2, procedure::GETPORT, &NFS));
        assert_eq!(results::<u32>(&port), 20_049);
        let udp = Mapping { protocol: portmap::UDP, ..NFS };
        assert_eq!(results::<u32>(&transport(to, &call(2, procedure::GETPORT, &udp))), 0);
        let dump = transport(to, &call(2, procedure::DUMP, &()));
        let listed = results::<List<Mapping>>(&dump).0;
        assert!(listed.contains(&NFS), "{listed:?}");
        let of_itself = Mapping { program: portmap::PROGRAM, version: 2, port: 0, ..NFS };
        let itself = transport(to, &call(2, procedure::GETPORT, &of_itself));
        assert_eq!(results::<u32>(&itself), u32::from(to.port()));
        let versions = listed.iter().filter(|m| m.program == portmap::PROGRAM).map(|m| m.version);
        assert_eq!(versions.collect::<Vec<_>>(), [4, 3, 2], "rpcinfo -p asks for it first");

        let asked = Rpcb {
            program: NFS.program,
            version: 4,
            netid: Opaque(b"tcp"),
            address: Opaque(b""),
            owner: Opaque(b""),
        };
        let address = transport(to, &call(4, procedure::GETADDR, &asked));
        assert_eq!(results::<Opaque<'_, 64>>(&address).0, b"127.0.0.1.78.81");
        let exact = transport(to, &call(4, procedure::GETVERSADDR, &asked));
        assert_eq!(results::<Opaque<'_, 64>>(&exact).0, b"");
        let dump = transport(to, &call(3, procedure::DUMP, &()));
        assert_eq!(results::<List<Rpcb<'_>>>(&dump).0.len(), 2 + 3);

        let set = transport(to, &call(2, procedure::SET, &Mapping { program: 7, ..NFS }));
        assert!(!results::<bool>(&set));
        let unset = transport(to, &call(4, procedure::UNSET, &asked));
        assert!(!results::<bool>(&unset));
        // With CALLIT others could make the portmapper send calls to any host, so it is
        // PROC_UNAVAIL.
        assert_eq!(transport(to, &call(2, 5, &()))[HEADER_BYTES - 4..], [0, 0, 0, 3]);
    }
    portmapper.shutdown();
}

/// A gate that admits no peer.
struct Closed;

impl Gate<IpAddr> for Closed {
    fn admits(&self, _: &IpAddr) -> Admission {
        Admission::Refused(AuthStat::BadCred)
    }
}

#[test]
fn replies_to_unlisted_hosts_are_no_longer_than_their_calls() {
    let portmapper = portmapper_behind(Arc::new(Closed));
    let to = portmapper.addresses()[0];
    let calls = [
        call(2, procedure::DUMP, &()),
        call(4, procedure::DUMP, &()),
        call(2, procedure::GETPORT, &NFS),
        call(2, procedure::NULL, &()),
        call(9, procedure::NULL, &()),
        call(9, procedure::DUMP, &()),
    ];
    for sent in calls {
        let reply = over_udp(to, &sent);
        assert!(reply.len() <= sent.len(), "{} bytes for {}", reply.len(), sent.len());
        assert_eq!(over_tcp(to, &sent), reply);
    }
    let denied = [9_u32, 1, 1, 1, AuthStat::BadCred as u32];
    let denied: Vec<u8> = denied.iter().flat_map(|word| word.to_be_bytes()).collect();
    assert_eq!(over_udp(to, &call(2, procedure::DUMP, &())), denied);
    let null = over_udp(to, &call(2, procedure::NULL, &()));
    assert_eq!(null[8..], [0; 16], "NULL is answered with success");
}

#[test]
fn a_datagram_shorter_than_a_call_gets_no_answer() {
    let portmapper = portmapper();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // The beginning of a call. Over TCP it would be answered with GARBAGE_ARGS.
    let short = [9_u32, 0, 2].map(u32::to_be_bytes).concat();
    socket.send_to(&short, portmapper.addresses()[0]).unwrap();
    let mut null = call(2, procedure::NULL, &());
    null[3] = 10;
    socket.send_to(&null, portmapper.addresses()[0]).unwrap();
    let mut reply = [0; 64];
    socket.recv(&mut reply).unwrap();
    assert_eq!(reply[..4], [0, 0, 0, 10], "the first reply is that to the whole call");
}

#[test]
fn another_version_of_a_program_has_a_port_and_no_address_of_its_own() {
    let portmapper = portmapper();
    let to = portmapper.addresses()[0];
    let port =
        |mapping: Mapping| results::<u32>(&over_udp(to, &call(2, procedure::GETPORT, &mapping)));
    assert_eq!(port(Mapping { version: 4, ..NFS }), 20_049, "RFC 1833, 3.2");
    assert_eq!(port(Mapping { program: 100_021, ..NFS }), 0);
    let asked = |version, netid: &'static [u8]| {
        let (address, owner) = (Opaque(b"".as_slice()), Opaque(b"".as_slice()));
        let asked = Rpcb { program: NFS.program, version, netid: Opaque(netid), address, owner };
        over_udp(to, &call(4, procedure::GETVERSADDR, &asked))[HEADER_BYTES..].to_vec()
    };
    assert_eq!(asked(3, b"tcp")[4..18], *b"127.0.0.1.78.8");
    for nothing in [asked(4, b"tcp"), asked(3, b"udp"), asked(3, b"tcp6"), asked(3, b"")] {
        assert_eq!(nothing, [0; 4]);
    }
}

#[test]
fn arguments_that_break_off_or_lie_about_their_length_are_garbage() {
    let portmapper = portmapper();
    let to = portmapper.addresses()[0];
    let (netid, address, owner) =
        (Opaque(b"tcp".as_slice()), Opaque(b"".as_slice()), Opaque(b"me"));
    let asked = Rpcb { program: NFS.program, version: 3, netid, address, owner };
    let calls = [call(2, procedure::GETPORT, &NFS), call(4, procedure::GETADDR, &asked)];
    let garbage = [9_u32, 1, 0, 0, 0, 4].map(u32::to_be_bytes).concat();
    for whole in &calls {
        for length in 40..whole.len() {
            assert_eq!(over_udp(to, &whole[..length]), garbage, "{length} bytes");
        }
    }
    let [_, mut lie] = calls;
    for length in [u32::MAX, 1 << 31, 1 << 16] {
        lie[48..52].copy_from_slice(&length.to_be_bytes());
        assert_eq!(over_udp(to, &lie), garbage, "{length} bytes of a netid announced");
    }
    let behind = [call(2, procedure::DUMP, &()), vec![0; 4]].concat();
    assert_eq!(over_udp(to, &behind), garbage, "bytes behind the arguments");
}

#[test]
fn datagrams_that_are_no_calls_get_no_answer_and_stop_no_others() {
    let portmapper = portmapper();
    let to = portmapper.addresses()[0];
    let null = call(2, procedure::NULL, &());
    let reply = [9_u32, 1, 0, 0, 0, 0].map(u32::to_be_bytes).concat();
    // Two servers that answered replies would send replies to each other for ever.
    for no_call in [&reply[..], &[0xff; 4096], &[0; 39], &[0; 1], &[]] {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.send_to(no_call, to).unwrap();
        socket.send_to(&null, to).unwrap();
        let mut first = [0; 64];
        let length = socket.recv(&mut first).unwrap();
        assert_eq!(first[..length], reply, "the first answer is that to the call");
    }
    let long = [null.clone(), vec![0; 8000]].concat();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(&long, to).unwrap();
    assert_eq!(over_udp(to, &null), reply, "a datagram longer than the buffer is survived");
}

#[test]
fn an_address_is_free_again_after_the_portmapper_and_taken_before() {
    let portmapper = portmapper();
    let to = portmapper.addresses()[0];
    let again = |to| Portmapper::start(vec![to], &[], &OpenGate);
    let error = again(to).err().unwrap().to_string();
    assert!(error.contains(&to.port().to_string()) && error.contains("in use"), "{error}");
    portmapper.shutdown();
    let datagrams = UdpSocket::bind(to).unwrap();
    let error = again(to).err().unwrap().to_string();
    assert!(error.contains("datagrams") && error.contains(&to.to_string()), "{error}");
    drop(datagrams);
    again(to).unwrap().shutdown();
}
