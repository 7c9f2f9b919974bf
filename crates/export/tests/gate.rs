//! Which peers may call anything but NULL.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_credential::{Admission, AuthStat, Gate};
use comity_export::{Client, Export, ExportId, Exports, HandleKey, Plan, Rules, Visitor};
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

fn visitor(peer: &str) -> Visitor {
    Visitor::new(peer.parse::<SocketAddr>().unwrap())
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
