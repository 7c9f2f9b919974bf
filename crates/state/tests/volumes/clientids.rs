use comity_state::{ClientId, DelegationWish, Engine, Error, ExportedVolume, ImportRefusal, Share};

use crate::moves::move_volume;
use crate::site::{NOW, VOLUME, caller, client, engine, file, old_client, open, opened};

/// The state of a client of minor version 0, its clientid, and an engine that had taken it in and
/// has forgotten the client.
fn forgotten() -> (Engine, ExportedVolume, ClientId) {
    let (from, to) = (engine(1), engine(2));
    let old = old_client(&from, "c");
    opened(&from, &old, file(VOLUME, 1));
    let volume = move_volume(&from, &to);
    to.evict(NOW, &to.client_by_id(old.id()).unwrap());
    (to, volume, old.id())
}

#[test]
fn a_refused_import_leaves_the_memory_of_clientids_of_other_engines_as_it_was() {
    let (to, mut volume, id) = forgotten();
    let known = |id| to.client_of(id, caller(b'c')).map(drop);
    let wanted = (file(VOLUME, 1), Share::BOTH);
    let (x, _) = client(&to, "x");
    open(&to, &x, wanted, DelegationWish::Write).unwrap();
    let other = ClientId(id.0 ^ 1 << 40);
    for tried in [id, other] {
        volume.clients[0].id = tried;
        let refused = to.import_volume(NOW, &volume).map(drop);
        assert_eq!(refused, Err(ImportRefusal::Client(tried, Error::ReclaimConflict)));
        assert_eq!(known(id), Err(Error::Expired), "{tried}");
        assert_eq!(known(other), Err(Error::StaleClientid), "{tried}");
    }
}
