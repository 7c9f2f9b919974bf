//! The outcome of migrations whose target did not answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use anyhow::{Context, Result, anyhow};
use comity_export::Whereabouts;
use comity_migrate::MigrationClient;
use comity_proto::migration::MigrationId;
use comity_server::LogRateLimit;

use super::MigrationParts;
use super::moved_exports::{ExportPlace, Handover};
use crate::state_service::each_second;

/// Asks each second for the outcome of migrations whose target has not answered, until what it
/// returns is dropped.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn ask_for_outcomes(parts: &MigrationParts) -> Result<Sender<()>> {
    let parts = parts.clone();
    parts.memory.engine.hold_grace(may_be_served_again(&parts));
    let thread = each_second("outcomes", move || settle(&parts));
    let (stop, _) = thread.context("cannot start the thread that asks for outcomes")?;
    Ok(stop)
}

/// Asks for the outcome of each migration whose target did not answer, and applies it.
fn settle(parts: &MigrationParts) {
    static LOG: LogRateLimit = LogRateLimit::new();
    for (to, paths) in parts.moved.unanswered() {
        if let Err(why) = settle_one(parts, &to, &paths) {
            let peer = &to.peer;
            LOG.say(|suppressed| {
                tracing::warn!(?paths, %peer, suppressed, "the outcome is not known: {why:#}");
            });
        }
    }
    if !may_be_served_again(parts) {
        parts.memory.engine.hold_grace(false);
    }
}

/// Returns whether this server may yet have to serve the exports of a migration whose outcome is
/// not known. Clients cannot reclaim their state before that is known. The answer is no if the
/// configuration lacks the peer or one of the exports.
fn may_be_served_again(parts: &MigrationParts) -> bool {
    let plan = Arc::clone(&parts.exports.current());
    parts.moved.unanswered().into_iter().any(|(to, paths)| {
        let has_all = paths.iter().all(|path| plan.export_at(path).is_some());
        has_all && plan.peer_named(&to.peer).is_some()
    })
}

fn settle_one(parts: &MigrationParts, to: &Handover, paths: &[PathBuf]) -> Result<()> {
    let plan = Arc::clone(&parts.exports.current());
    let peer = plan.peer_named(&to.peer);
    let peer = peer.with_context(|| format!("the configuration has no [[peer]] {}", to.peer))?;
    let id = id_of(&to.migration).context("the table holds no number of a migration")?;
    let is_taken = MigrationClient::connect(peer, parts.identity()?)?.outcome(id)?;
    let turn = parts.reload.turn();
    if parts.moved.unanswered().get(to).map(Vec::as_slice) != Some(paths) {
        return Ok(());
    }
    let current = Arc::clone(&parts.exports.current());
    let volume = current.volume_of(paths).context("the exports are not in the configuration")?;
    let (whereabouts, place) = if is_taken {
        (Whereabouts::At(peer.name.clone()), to.completed())
    } else {
        (Whereabouts::Here, ExportPlace::Here)
    };
    let settled = current.placing(paths, &whereabouts).map_err(|why| anyhow!(why))?;
    parts.moved.note(paths, &place)?;
    let ids = settled.ids_of(paths);
    if !is_taken {
        parts.memory.engine.restart_grace(parts.memory.clock.now());
    }
    turn.put_in_force(settled);
    if is_taken {
        parts.forget(volume, &ids);
    }
    tracing::info!(?paths, peer = %to.peer, is_taken, "the outcome of a migration is known");
    Ok(())
}

/// Reads the hexadecimal digits of a migration.
fn id_of(text: &str) -> Option<MigrationId> {
    let number = u128::from_str_radix(text, 16).ok()?;
    (text.len() == 32).then(|| number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::hexadecimal;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        let id = std::array::from_fn(|at| at as u8);
        assert_eq!(hexadecimal(&id), "000102030405060708090a0b0c0d0e0f");
        assert_eq!(id_of(&hexadecimal(&id)), Some(id));
        for text in ["", "0", "g00102030405060708090a0b0c0d0e0f"] {
            assert_eq!(id_of(text), None, "{text}");
        }
    }
}
