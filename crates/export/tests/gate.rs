//! Peers that are not admitted may call NULL only.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{
    Admission, AuthStat, Channel, Gate, GateRefusal, KeyId, PeerIdentity, PeerKey,
};
use comity_export::{
    Client, Export, ExportId, ExportRequest, Exports, HandleKey, PeerServer, Plan, Resolver,
    RpcPeer, Rules, Source, Sources, Unresolved, load,
};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use comity_vfs::Fs;

const UNLISTED: Admission = Admission::Refused(AuthStat::BadCred);
const WRONG_PORT: Admission = Admission::Refused(AuthStat::TooWeak);

/// A plan of one export for each of these clients, `secure` or not.
fn plan(clients: &[(&str, bool)]) -> Plan {
    let fs: Arc<dyn Fs> = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let export = |(number, &(client, secure)): (usize, &(&str, bool))| {
        let rules = Arc::new(Rules { secure, ..Rules::default() });
        let clients = vec![(Client::parse(client).unwrap(), rules)];
        let path = format!("/srv/{number}").into();
        Arc::new(Export::new(ExportId(number as u32), path, Arc::clone(&fs), clients))
    };
    Plan::new(HandleKey::new([9; 16]), clients.iter().enumerate().map(export).collect())
}

fn visitor(peer: &str) -> RpcPeer {
    RpcPeer::new(peer.parse::<SocketAddr>().unwrap())
}

#[test]
fn a_peer_that_no_export_is_offered_to_is_refused() {
    let exports = Exports::new(plan(&[("192.0.2.1", false), ("10.0.0.0/8", true)]));
    for (peer, said) in [
        ("192.0.2.1:40000", Admission::Admitted),
        ("192.0.2.2:700", UNLISTED),
        ("10.1.1.1:1023", Admission::Admitted),
        ("10.1.1.1:1024", WRONG_PORT),
        ("[::ffff:10.1.1.1]:700", Admission::Admitted),
        ("[2001:db8::1]:700", UNLISTED),
    ] {
        let visitor = visitor(peer);
        for _ in 0..2 {
            assert_eq!(exports.admits(&visitor), said, "{peer}");
        }
    }
    assert_eq!(exports.refused(), 6);
}

#[test]
fn one_export_that_takes_the_port_is_enough() {
    let exports = Exports::new(plan(&[("10.0.0.0/8", true), ("*", false)]));
    assert_eq!(exports.admits(&visitor("10.1.1.1:40000")), Admission::Admitted);
}

/// A peer of a server that offers TLS.
fn offered_tls(peer: &str) -> RpcPeer {
    visitor(peer).offering_tls(true)
}

#[test]
fn a_peer_begins_tls_only_where_it_is_offered_and_the_peer_is_known() {
    let exports = Exports::new(plan(&[("10.0.0.0/8", true)]));
    assert!(exports.starts_tls(&offered_tls("10.1.1.1:700")));
    assert!(exports.starts_tls(&offered_tls("10.1.1.1:40000")), "its port does not count yet");
    assert!(!exports.starts_tls(&visitor("10.1.1.1:700")), "the server has no key");
    assert!(!exports.starts_tls(&offered_tls("192.0.2.1:700")), "no export is offered to it");
    let begun = offered_tls("10.1.1.1:700").over(Channel::Tls(None));
    assert!(!exports.starts_tls(&begun), "TLS within TLS");
    let called = offered_tls("10.1.1.1:700");
    assert_eq!(exports.admits(&called), Admission::Admitted);
    assert!(!exports.starts_tls(&called), "it has called in clear already");
}

#[test]
fn a_portmapper_asks_for_the_address_only() {
    let exports = Exports::new(plan(&[("10.0.0.0/8", true)]));
    let admits = |peer: &str| exports.admits(&peer.parse::<IpAddr>().unwrap());
    assert_eq!(admits("10.1.1.1"), Admission::Admitted);
    assert_eq!(admits("192.0.2.1"), UNLISTED);
}

#[test]
fn a_server_without_exports_admits_nobody() {
    assert_eq!(Exports::new(plan(&[])).admits(&visitor("127.0.0.1:700")), UNLISTED);
}

#[test]
fn a_verdict_is_kept_until_the_plan_changes_and_no_longer() {
    let exports = Exports::new(plan(&[("10.0.0.0/8", false)]));
    let (inside, outside) = (visitor("10.1.1.1:700"), visitor("192.0.2.1:700"));
    assert_eq!(exports.admits(&inside), Admission::Admitted);
    assert_eq!(exports.admits(&outside), UNLISTED);
    exports.replace(plan(&[("192.0.2.0/24", false)]));
    assert_eq!(exports.admits(&inside), UNLISTED);
    assert_eq!(exports.admits(&outside), Admission::Admitted);
}

/// The time after which the name server gives up.
const SILENCE: Duration = Duration::from_secs(10);

/// Knows one host, and waits in vain for an answer about 203.0.113.0/24.
struct Slow;

impl Resolver for Slow {
    fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, Unresolved> {
        match name {
            "good.example.org" => Ok(vec![[192, 0, 2, 5].into()]),
            _ => Err(Unresolved::Unknown),
        }
    }

    fn name(&self, address: IpAddr) -> Result<String, Unresolved> {
        match address.to_string().as_str() {
            "192.0.2.5" => Ok("good.example.org".into()),
            silent if silent.starts_with("203.0.113.") => {
                std::thread::sleep(SILENCE);
                Err(Unresolved::Failed("no answer".into()))
            }
            _ => Err(Unresolved::Unknown),
        }
    }
}

/// The exports of this text; [`Slow`] resolves their names.
fn named(text: &str) -> Exports {
    let text = Source::Text { name: "e".into(), text: text.into() };
    let sources = Sources { resolver: Arc::new(Slow), ..Sources::new(vec![text]) };
    let open = |_: &ExportRequest<'_>| {
        let fs = Memory::new(MemoryOptions::default()).map_err(|status| status.to_string())?;
        Ok(Arc::new(fs) as Arc<dyn Fs>)
    };
    let plan = load(&sources, &open, HandleKey::new([1; 16]), None);
    Exports::new(plan.unwrap_or_else(|found| panic!("{found:?}")).0)
}

#[test]
fn peers_whose_names_cannot_be_resolved_do_not_delay_others() {
    let exports = named("/srv 10.0.0.1(rw,insecure) *.example.org(rw,insecure)\n");
    let (listed, good) = (visitor("10.0.0.1:700"), visitor("192.0.2.5:700"));
    assert_eq!(exports.admits(&listed), Admission::Admitted);
    let strangers: Vec<_> = (1..5).map(|last| visitor(&format!("203.0.113.{last}:700"))).collect();
    let begun = Instant::now();
    for _ in 0..10 {
        for stranger in &strangers {
            assert_eq!(exports.admits(stranger), Admission::Undecided);
        }
        assert_eq!(exports.admits(&listed), Admission::Admitted);
        assert_eq!(exports.admits(&visitor("10.0.0.1:800")), Admission::Admitted);
    }
    assert!(begun.elapsed() < SILENCE / 2, "{:?}", begun.elapsed());
    while exports.admits(&good) != Admission::Admitted {
        assert!(begun.elapsed() < SILENCE / 2, "a good name waits for those without an answer");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_wider_entry_does_not_decide_before_the_name_is_resolved() {
    let exports = named("/srv *.example.org(rw) *(ro,insecure)\n");
    let silent = visitor("203.0.113.9:700");
    for _ in 0..3 {
        assert_eq!(exports.admits(&silent), Admission::Undecided);
    }
}

#[test]
fn a_peer_without_a_name_is_refused_until_it_has_one() {
    let exports = named("/srv *.example.org(rw)\n");
    let nameless = visitor("192.0.2.77:700");
    let begun = Instant::now();
    while exports.admits(&nameless) == Admission::Undecided {
        assert!(begun.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(exports.admits(&nameless), UNLISTED);
}

/// Judging a peer means to look at all exports.
#[test]
fn a_peer_that_calls_again_is_not_judged_again() {
    let lines: String =
        (0..2000).map(|n| format!("/srv/{n} 10.0.0.1(rw,fsid={})\n", n + 1)).collect();
    let exports = named(&format!("{lines}/srv *.example.org(rw)\n"));
    let stranger = visitor("192.0.2.77:700");
    let begun = Instant::now();
    while exports.admits(&stranger) == Admission::Undecided {
        assert!(begun.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(1));
    }
    let judged = shortest(|| assert_eq!(exports.admits(&visitor("192.0.2.77:700")), UNLISTED));
    let again = shortest(|| assert_eq!(exports.admits(&stranger), UNLISTED));
    assert!(again * 4 < judged, "{again:?} {judged:?}");
}

/// Returns the shortest of many times that something takes: other work of the machine delays some.
fn shortest(work: impl Fn()) -> Duration {
    let time = |_| {
        let begun = Instant::now();
        work();
        begun.elapsed()
    };
    (0..50).map(time).min().unwrap()
}

#[test]
fn the_reason_of_a_refusal_names_the_port_or_the_channel() {
    let exports = named(
        "/srv 10.0.0.1(insecure,xprtsec=tls:mtls) 10.0.0.2(xprtsec=tls) 10.0.0.3(secure)\n\
         /other 10.0.0.1(insecure,xprtsec=mtls)\n",
    );
    let reason = |peer: &str, why| {
        exports.refusal_reason(&visitor(peer), GateRefusal { program: 100_003, why })
    };
    let weak = AuthStat::TooWeak;
    let channel = "it calls by xprtsec=none, and the exports offered to it take";
    let two = format!("{channel} xprtsec=mtls or xprtsec=tls:mtls only: mount with that option");
    assert_eq!(reason("10.0.0.1:40000", weak), two);
    let both = format!("{channel} xprtsec=tls only, from ports below 1024");
    assert_eq!(reason("10.0.0.2:40000", weak), both);
    let port = "the exports offered to it take calls from ports below 1024 only";
    assert_eq!(reason("10.0.0.3:40000", weak), port);
    assert_eq!(reason("192.0.2.1:700", AuthStat::BadCred), "no export is offered to it");
}

/// A visitor that has proved a key by TLS.
fn with_key(peer: &str, key: &PublicKey) -> RpcPeer {
    let spki = key.to_spki();
    let identity = PeerIdentity {
        key: PeerKey::new(&spki, KeyId(*spki.last_chunk().unwrap())),
        names: Box::default(),
        authorities: Box::default(),
        user: None,
        expires: u64::MAX,
    };
    visitor(peer).over(Channel::Tls(Some(Arc::new(identity))))
}

#[test]
fn a_peer_in_the_configuration_lets_anybody_begin_tls_and_do_no_more() {
    let [own, other] = [(); 2].map(|()| PrivateKey::generate(Algorithm::Ed25519).unwrap());
    let (name, host) = ("b".into(), "198.51.100.1".into());
    let (key, addresses) = (*own.public_key(), ["198.51.100.1".parse().unwrap()].into());
    let peer = PeerServer { name, host, port: 2049, key, addresses };
    let exports = Exports::new(plan(&[("10.0.0.0/8", false)]).peering(vec![peer]));
    assert!(exports.starts_tls(&offered_tls("192.0.2.1:40000")));
    let stranger = with_key("192.0.2.1:40000", other.public_key());
    let weak = Admission::Refused(AuthStat::TooWeak);
    for visitor in [&stranger, &visitor("192.0.2.1:700"), &visitor("198.51.100.1:700")] {
        assert_eq!(exports.admits(visitor), UNLISTED);
        assert_eq!(exports.admits_compound(visitor), UNLISTED);
        assert_eq!(exports.admits_in_clear(visitor), UNLISTED);
        assert_eq!(exports.admits_peer_server(visitor), weak);
    }
    let known = with_key("192.0.2.1:40000", own.public_key());
    assert_eq!(exports.admits_peer_server(&known), Admission::Admitted);
    assert_eq!(exports.admits(&known), UNLISTED, "it may hand exports over, and no more");
    let reason = exports.peer_refusal_reason(&stranger);
    let proved = format!("it has proved the key {}, which no [[peer]] has", other.public_key());
    assert!(reason.starts_with(&proved), "{reason}");
    let reason = exports.peer_refusal_reason(&visitor("10.0.0.1:700"));
    assert!(reason.starts_with("it has proved no key by TLS, and only a [[peer]]"), "{reason}");
}
