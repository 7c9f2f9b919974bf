//! The exports and the state of a server: the same in tests and in the example `instructions`.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, bail};
use comity_backend::{Passthrough, PassthroughOptions};
use comity_export::{ExportRequest, Exports, HandleKey, Source, Sources, load};
use comity_nfs4::{Clock, Memory, ServerIdentity};
use comity_state::{Engine, Recovered, Settings};
use comity_vfs::Fs;

/// A folder, exported to this machine.
pub(crate) fn exports(root: &Path) -> Result<Arc<Exports>> {
    let source = Source::export("bench", root, "127.0.0.1(rw,insecure,no_root_squash)");
    let open = |request: &ExportRequest<'_>| {
        let fs = Passthrough::open(request.path, PassthroughOptions::default());
        fs.map(|fs| Arc::new(fs) as Arc<dyn Fs>).map_err(|error| error.to_string())
    };
    let loaded = load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None);
    let Ok((plan, _)) = loaded else { bail!("no plan") };
    Ok(Arc::new(Exports::new(plan)))
}

/// Returns the initial state of a server of version 4.
pub(crate) fn memory() -> Memory {
    let clock = Clock::start();
    Memory {
        engine: Arc::new(Engine::new(clock.now(), Settings::new(7, [7; 16]), Recovered::new())),
        clock,
        identity: ServerIdentity::alone(b"bench"),
        callbacks: None,
        settle: Some(Arc::new(|_| true)),
        pause: None,
        locals: None,
        copier: None,
    }
}
