//! Seeds of the state of a volume: without state, and with hosts of NLM that have locks and wait.

use std::time::Duration;

use comity_fuzz::sections_of;
use comity_state::{
    ByteRange, Engine, FileKey, HostLock, LockRequestKind, LockType, Origin, Recovered, Settings,
    Share,
};
use comity_vfs::Handle;

use super::write;

const NOW: Duration = Duration::from_secs(1000);
const VOLUME: u64 = 1;

fn file(number: u8) -> FileKey {
    let handle = Handle::new(&[number]).expect("one byte is a handle");
    FileKey { volume: VOLUME, export: 1, handle }
}

/// Two hosts: one has a lock and a share, the other waits for the lock.
fn lock(engine: &Engine) {
    let hosts = [&b"one"[..], b"two"].map(|name| {
        engine.host(NOW, name, Origin::from_bytes([name[0]; 16])).expect("there is room")
    });
    let (owner, kind, range) = (&b"process"[..], LockType::Write, ByteRange::ALL);
    let wish = HostLock { owner, file: file(1), range, kind };
    for host in &hosts {
        let _ = engine.lock_host(NOW, host, &wish, LockRequestKind::Blocking);
    }
    let share = Share { access: Share::READ, deny: Share::WRITE };
    let how = LockRequestKind::NonBlocking;
    engine.share_host(NOW, &hosts[0], (owner, file(2)), share, how).expect("it is not shared");
}

pub(crate) fn all() -> std::io::Result<()> {
    let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
    let save = |name: &str, engine: &Engine| {
        let volume = engine.export_volume(NOW, VOLUME).expect("nothing is under way");
        let bytes = volume.to_bytes().expect("it is small");
        write("volume", name, sections_of(&bytes))
    };
    save("empty", &engine)?;
    lock(&engine);
    save("hosts", &engine)
}
