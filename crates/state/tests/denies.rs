//! The count of opens with a deny mode is zero again when they have ended in any way.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use comity_state::{Client, Engine, Error, FileKey, LockRequestKind, Recovered, Settings, Share};
use comity_vfs::Handle;

const NOW: Duration = Duration::from_secs(1);
const OWNER: &[u8] = b"owner";

fn engine() -> Engine {
    Engine::new(NOW, Settings::new(7, [7; 16]), Recovered::new())
}

fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

fn share(engine: &Engine, host: &Arc<Client>, number: u8, deny: u32) -> Result<(), Error> {
    let share = Share { access: Share::READ, deny };
    engine.share_host(NOW, host, (OWNER, file(number)), share, LockRequestKind::NonBlocking)
}

fn check(engine: &Engine, host: &[u8], number: u8) -> Result<(), Error> {
    engine.check_denied(NOW, &[host], (&file(number), Share::WRITE))
}

#[test]
fn opens_that_deny_are_counted_through_changes_refusals_and_ends() {
    let engine = engine();
    let [one, two] = [b"one", b"two"]
        .map(|name| engine.host(NOW, name, comity_state::Origin::default()).unwrap());
    share(&engine, &one, 1, 0).unwrap();
    assert!(!engine.has_denies());
    // The same owner changes its deny mode twice.
    share(&engine, &one, 1, Share::WRITE).unwrap();
    share(&engine, &one, 1, Share::BOTH).unwrap();
    assert_eq!(share(&engine, &two, 1, Share::WRITE), Err(Error::ShareDenied));
    assert!(engine.has_denies());
    share(&engine, &one, 1, 0).unwrap();
    assert!(!engine.has_denies(), "one open was counted more than once");
    share(&engine, &one, 1, Share::WRITE).unwrap();
    share(&engine, &two, 2, Share::WRITE).unwrap();
    engine.unshare_host(NOW, &one, (OWNER, file(1)));
    assert!(engine.has_denies());
    engine.evict(NOW, &two);
    assert!(!engine.has_denies());
}

#[test]
fn a_host_is_not_denied_by_itself() {
    let engine = engine();
    let one = engine.host(NOW, b"one", comity_state::Origin::default()).unwrap();
    share(&engine, &one, 1, Share::WRITE).unwrap();
    assert_eq!(check(&engine, b"one", 1), Ok(()));
    assert_eq!(check(&engine, b"two", 1), Err(Error::ShareDenied));
    assert_eq!(check(&engine, b"two", 2), Ok(()));
}
