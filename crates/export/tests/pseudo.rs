//! Handles of the directories above the exports, as clients send them back.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use comity_backend::{Memory, MemoryOptions};
use comity_export::{Client, Export, ExportId, Found, HandleKey, Plan, PseudoNode, RpcPeer, Rules};
use comity_vfs::{Fs, Handle, Status};

/// A plan of one export at this path for one host, with handles under this key.
fn plan(path: &str, key: u8) -> Plan {
    let fs: Arc<dyn Fs> = Arc::new(Memory::new(MemoryOptions::default()).unwrap());
    let clients = vec![(Client::parse("10.1.1.1").unwrap(), Arc::new(Rules::default()))];
    let export = Arc::new(Export::new(ExportId(1), path.into(), fs, clients));
    Plan::new(HandleKey::new([key; 16]), vec![export])
}

fn visitor(peer: &str) -> RpcPeer {
    RpcPeer::new(peer.parse().unwrap())
}

/// The directory `/srv`.
fn srv<'a>(plan: &'a Plan, visitor: &'a RpcPeer) -> PseudoNode<'a> {
    let pseudo = plan.pseudo(visitor);
    match pseudo.lookup(pseudo.top(), b"srv") {
        Ok(Found::Pseudo(node)) => node,
        _ => panic!("a directory leads to the export"),
    }
}

#[test]
fn a_handle_of_a_directory_above_the_exports_is_opened() {
    let (plan, visitor) = (plan("/srv/data", 1), visitor("10.1.1.1:700"));
    let pseudo = plan.pseudo(&visitor);
    for node in [pseudo.top(), srv(&plan, &visitor)] {
        assert_eq!(pseudo.open(pseudo.seal(&node).bytes()), Ok(Some(node)));
    }
}

#[test]
fn a_handle_of_an_export_names_no_directory_above_the_exports() {
    let (plan, visitor) = (plan("/srv/data", 1), visitor("10.1.1.1:700"));
    let pseudo = plan.pseudo(&visitor);
    let sealed = HandleKey::new([1; 16]).seal(ExportId(1), &Handle::new(&[7; 8]).unwrap());
    assert_eq!(pseudo.open(sealed.bytes()), Ok(None));
    let sealed = pseudo.seal(&pseudo.top());
    for length in 0..5 {
        assert_eq!(pseudo.open(&sealed.bytes()[..length]), Ok(None), "{length} bytes name nothing");
    }
}

#[test]
fn a_handle_that_was_not_sealed_here_is_bad() {
    let (plan, visitor) = (plan("/srv/data", 1), visitor("10.1.1.1:700"));
    let pseudo = plan.pseudo(&visitor);
    let sealed = pseudo.seal(&srv(&plan, &visitor));
    for place in 5..sealed.bytes().len() {
        let mut forged = sealed.bytes().to_vec();
        forged[place] ^= 1;
        assert_eq!(pseudo.open(&forged), Err(Status::BadHandle), "byte {place}");
    }
    let other = crate::plan("/srv/data", 2);
    let pseudo = other.pseudo(&visitor);
    assert_eq!(pseudo.open(sealed.bytes()), Err(Status::BadHandle));
}

#[test]
fn a_handle_of_a_directory_that_leads_nowhere_any_more_is_stale() {
    let (plan, visitor) = (plan("/srv/data", 1), visitor("10.1.1.1:700"));
    let sealed = plan.pseudo(&visitor).seal(&srv(&plan, &visitor));
    let moved = crate::plan("/home/data", 1);
    assert_eq!(moved.pseudo(&visitor).open(sealed.bytes()), Err(Status::Stale));
    let stranger = crate::visitor("10.1.1.2:700");
    assert_eq!(plan.pseudo(&stranger).open(sealed.bytes()), Err(Status::Stale));
    let top = plan.pseudo(&visitor).seal(&plan.pseudo(&visitor).top());
    assert!(plan.pseudo(&stranger).open(top.bytes()).is_ok(), "everybody has the top");
}
