//! The advice to move exports: a prediction of each move from the loads of both servers.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use comity_export::Plan;
use comity_load::{Forecast, Ratio, ServerLoad};
use serde_json::{Value, json};

use super::MigrationParts;
use super::advisor::PeerLoads;
use super::departure::Departure;
use crate::load::{parts_by_export, server_load};

/// The reason why the part of an export in the calls is not known.
const NOT_MEASURED: &str = "this server does not count calls by export: start it with --metrics";

/// Exports that can only move together, as they are of one volume.
struct Movable {
    exports: Vec<PathBuf>,
    /// Their part in the calls to this server, if it is known.
    part: Option<Ratio>,
}

/// Describes both loads and each move: those that pay first, and the one by which all calls gain
/// most before others.
pub(super) fn advice_json(parts: &MigrationParts, peers: &PeerLoads) -> Value {
    let plan = Arc::clone(&parts.exports.current());
    let here = server_load(&parts.load);
    let movable = movable(&plan, parts_by_export(&parts.load).as_ref());
    let known = |(peer, load): (_, &Result<ServerLoad>)| Some((peer, *load.as_ref().ok()?));
    let known: Vec<(&String, ServerLoad)> = peers.iter().filter_map(known).collect();
    let mut moves: Vec<((bool, f64), Value)> = Vec::new();
    for unit in &movable {
        for (peer, there) in &known {
            let forecast = unit.part.map(|part| Forecast::new(&here, there, here.own.part(part)));
            let gain = forecast.as_ref().map_or(f64::NEG_INFINITY, |forecast| forecast.all);
            let shown = move_json(parts, (unit, peer), forecast.as_ref());
            moves.push(((shown["pays"] == true, gain), shown));
        }
    }
    moves.sort_by(|((pays, gain), _), ((others, other), _)| {
        others.cmp(pays).then(other.total_cmp(gain))
    });
    let peers: Vec<Value> = peers.iter().map(|(peer, load)| peer_json(peer, load)).collect();
    let moves: Vec<Value> = moves.into_iter().map(|(_, shown)| shown).collect();
    json!({
        "state": "done",
        "here": load_json(&here),
        "serves_three": parts.serves_three,
        "peers": peers,
        "moves": moves,
    })
}

/// Groups the exports that are served here by volume.
fn movable(plan: &Plan, by_export: Option<&HashMap<u32, f64>>) -> Vec<Movable> {
    let volumes = plan.by_volume();
    let is_all = volumes.len() == 1;
    let of = |exports: Vec<PathBuf>| {
        let calls = |by_export: &HashMap<u32, f64>| {
            let ids = plan.ids_of(&exports);
            ids.iter().filter_map(|id| by_export.get(id)).sum::<f64>()
        };
        let part = if is_all { Some(1.0) } else { by_export.map(calls) };
        Movable { part: part.map(|part| Ratio::of(part, 1.0)), exports }
    };
    volumes.into_values().map(of).collect()
}

fn move_json(
    parts: &MigrationParts,
    (unit, peer): (&Movable, &str),
    forecast: Option<&Forecast>,
) -> Value {
    let Movable { exports, part } = unit;
    let warnings = Departure::new(parts, exports, peer).and_then(|departure| departure.warnings());
    let doubts = forecast.map_or_else(
        || vec![NOT_MEASURED.to_owned()],
        |forecast| forecast.doubts.iter().map(ToString::to_string).collect(),
    );
    json!({
        "exports": exports.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "to": peer,
        "part": part.map(Ratio::get),
        "gain": forecast.map(Forecast::gain),
        "gain_all": forecast.map(|forecast| forecast.all),
        "gain_moved": forecast.map(|forecast| forecast.moved),
        "gain_staying": forecast.map(|forecast| forecast.staying),
        "gain_there": forecast.map(|forecast| forecast.there),
        "served_seconds": parts.moved.served_for(exports).as_secs(),
        "pays": warnings.is_ok() && forecast.is_some_and(Forecast::pays),
        "doubts": doubts,
        "obstacle": warnings.as_ref().err().map(|why| format!("{why:#}")),
        "warnings": warnings.unwrap_or_default(),
    })
}

fn peer_json(peer: &str, load: &Result<ServerLoad>) -> Value {
    match load {
        Ok(load) => json!({ "peer": peer, "load": load_json(load), "failed": null }),
        Err(why) => json!({ "peer": peer, "load": null, "failed": format!("{why:#}") }),
    }
}

fn load_json(load: &ServerLoad) -> Value {
    let (resource, ratio) = load.slowest();
    json!({
        "resource": resource,
        "ratio": ratio.get(),
        "slowdown": load.slowdown(),
        "calls_per_second": load.own.rates.calls,
        "sampled_seconds": load.sampled.as_secs(),
    })
}
