//! Warnings of what may go badly for clients although a migration is possible.

use std::path::{Path, PathBuf};

use comity_export::Plan;

use super::{MigrationParts, check_followers};

/// Most clients of an export that a warning names.
const NAMES_MAX: usize = 4;

/// Returns warnings about a move of these exports, all of one volume.
pub(super) fn warnings(
    parts: &MigrationParts,
    plan: &Plan,
    (paths, volume): (&[PathBuf], u64),
    is_forwarded: bool,
) -> Vec<String> {
    let mut warnings: Vec<String> = paths.iter().filter_map(|path| of_ports(plan, path)).collect();
    let comity_nfs4::Memory { engine, clock, .. } = &parts.memory;
    // State that cannot be exported at this moment may be so when the migration comes to it.
    let exported = engine.export_volume(clock.now(), volume).ok();
    if let Some(Err(holds)) = exported.map(|exported| check_followers(&exported, is_forwarded)) {
        warnings.push(format!("the exports do not move at present: {holds}"));
    }
    warnings
}

/// Warns of clients that may not come from the ports from which Linux comes to another server.
fn of_ports(plan: &Plan, path: &Path) -> Option<String> {
    let export = plan.export_at(path)?;
    let mut names: Vec<_> = export.clients_bound_to_low_ports().map(ToString::to_string).collect();
    if names.is_empty() {
        return None;
    }
    let more = if names.len() > NAMES_MAX { " and others" } else { "" };
    names.truncate(NAMES_MAX);
    Some(format!(
        "{}: {}{more} may call from ports below 1024 only; Linux comes to the other server from a \
         port above 1023, and gives the mount up (EIO) if that is refused: give them the option \
         insecure at both servers",
        path.display(),
        names.join(", ")
    ))
}
