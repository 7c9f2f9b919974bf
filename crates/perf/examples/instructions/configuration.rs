//! The five configurations of Spadavecchia & Zadok 2002, section 4, as rules of an export.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree::CALLER;
use comity_cloak::{CloakEntry, Owned};
use comity_export::{
    Client, Cloak, Export, ExportId, Exports, HandleKey, Ids, MAPS_AND_CLOAKS, Plan, Rules,
};
use comity_idmap::{IdMap, IdMapBuilder, Range, Rule};
use comity_nfs3::Nfs3;
use comity_perf::idmap_cost::{Configuration, FOREIGN, HIDDEN, foreign};
use comity_vfs::Fs;

use crate::stack::Stack;

/// The number of the export that is measured.
pub(crate) const EXPORT: ExportId = ExportId(1);

/// The client's first id that is mapped to [`FOREIGN`].
const CLIENTS: u32 = 1_000_000;

/// The secret of all handles.
pub(crate) fn key() -> HandleKey {
    HandleKey::new([7; 16])
}

/// Makes a server of `fs` with a configuration.
pub(crate) fn serving(
    fs: &Arc<dyn Fs>,
    configuration: Configuration,
    entries: u32,
) -> Result<Stack> {
    ensure!(
        MAPS_AND_CLOAKS != (configuration == Configuration::Van),
        "{configuration} is another build"
    );
    let rules = rules(configuration, entries)?;
    let clients = vec![(Client::Everybody, Arc::new(rules))];
    let export = Export::new(EXPORT, PathBuf::from("/bench"), Arc::clone(fs), clients);
    let exports = Arc::new(Exports::new(Plan::new(key(), vec![Arc::new(export)])));
    Ok(Stack::new(vec![Arc::new(Nfs3::new(Arc::clone(&exports), [1; 8]))], exports))
}

fn rules(configuration: Configuration, entries: u32) -> Result<Rules> {
    use Configuration::{Clk, Mnu, Rmap, RmapClk, RmapGid, Van};
    let (users, groups, cloaks) = match configuration {
        Van | Mnu => (false, false, false),
        Rmap => (true, false, false),
        RmapGid => (true, true, false),
        Clk => (false, false, true),
        RmapClk => (true, false, true),
    };
    let map = |wanted| if wanted { map(entries) } else { Ok(IdMap::empty()) };
    let ids = Ids { users: map(users)?, groups: map(groups)?, ..Ids::default() };
    let cloak = Cloak::new(&if cloaks { cloaked(entries)? } else { Vec::new() }).0;
    ensure!(cloak.is_empty() != cloaks, "an empty cloak");
    Ok(Rules { ids, cloak, ..Rules::default() })
}

/// The map: the caller keeps its id, and each further entry is a few ids of another domain.
fn map(entries: u32) -> Result<IdMap> {
    let mut map = IdMapBuilder::default();
    let caller = Range::single(CALLER);
    map.add(Rule { wire: caller, disk: caller }).context("the caller's rule")?;
    for entry in 1..entries {
        let disk = foreign(entry);
        let shift = |id: u32| id - FOREIGN + CLIENTS;
        let wire = Range { first: shift(*disk.start()), last: shift(*disk.end()) };
        let disk = Range { first: *disk.start(), last: *disk.end() };
        map.add(Rule { wire, disk }).context("a rule")?;
    }
    Ok(map.build())
}

/// The cloak: the strictest mask hides the files of the caller and of [`HIDDEN`] from others. The
/// mask of all other entries is tried for each file, and hides none that everybody may read.
fn cloaked(entries: u32) -> Result<Vec<CloakEntry>> {
    let entry = |ids: &RangeInclusive<u32>, mask: &str| -> Result<CloakEntry> {
        let ids = Range { first: *ids.start(), last: *ids.end() };
        Ok(CloakEntry { owned: Owned::ByUser, ids, mask: mask.parse()? })
    };
    let strict = [entry(&(CALLER..=CALLER), "+000"), entry(&(HIDDEN..=HIDDEN), "+000")];
    let others = (1..entries - 1).map(|number| entry(&foreign(number), "+004"));
    strict.into_iter().chain(others).collect()
}
