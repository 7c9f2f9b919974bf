use std::sync::Mutex;
use std::time::Duration;

use comity_export::{ExportId, Plan};
use comity_load::{Averages, OperationLoad, Rates, Ratio, Resource, UserShare};
use comity_server::metrics::append_ratios;
use serde_json::{Value, json};

use super::sampler::{Load, OperationName, lock};
use crate::limits::LOAD_CLIENTS_SHOWN;

/// Reports the load, for `comity top`.
pub(crate) fn load_json(load: &Mutex<Load>, plan: &Plan) -> Value {
    let load = lock(load);
    let resources: Vec<Value> =
        load.model.resources().map(|(resource, averages)| row(resource, averages)).collect();
    let clients = load.clients.busiest(LOAD_CLIENTS_SHOWN);
    let operations = load.operations.busiest();
    let events = load.events.busiest(usize::MAX);
    json!({
        "sampled_seconds": load.taken.as_secs_f64(),
        "verdict": verdict(&load),
        "bottleneck": load.model.bottleneck().map(|(resource, averages)| row(resource, averages)),
        "resources": resources,
        "total": rates(&load.clients.total(), load.is_measured),
        "clients": clients.iter().map(|share| client(&load, share)).collect::<Vec<_>>(),
        "clients_count": load.connections.len(),
        "exports": exports(&load, plan),
        "operations": operations.iter().map(operation).collect::<Vec<_>>(),
        "events": events.iter().map(event).collect::<Vec<_>>(),
        "is_measured": load.is_measured,
    })
}

/// Appends the load of each resource for the metrics page.
pub(crate) fn append(text: &mut String, load: &Mutex<Load>) {
    let load = lock(load);
    let rows: Vec<_> = load.model.resources().flat_map(samples).collect();
    append_ratios(
        text,
        "comity_load_ratio",
        "Part of a resource in use, 0 to 1.",
        rows.iter().map(|(labels, ratio)| (&labels[..], *ratio)),
    );
}

fn samples(
    (resource, averages): (&Resource, &Averages),
) -> [([(&'static str, String); 3], f64); 3] {
    let labels = |over: &str| {
        [
            ("resource", resource.kind().to_owned()),
            ("device", resource.device().unwrap_or_default().to_owned()),
            ("over", over.to_owned()),
        ]
    };
    [
        (labels("1s"), averages.second.get()),
        (labels("1m"), averages.minute.get()),
        (labels("5m"), averages.five_minutes.get()),
    ]
}

/// Names in a sentence the resource that limits the server.
fn verdict(load: &Load) -> String {
    let Some((resource, averages)) = load.model.bottleneck() else {
        return match load.model.resources().next() {
            Some(_) => "no resource of this server is a bottleneck".to_owned(),
            None => "no sample was taken yet".to_owned(),
        };
    };
    let percent = |ratio: Ratio| format!("{:.0} %", ratio.get() * 100.0);
    let over = format!("{} over the last minute", percent(averages.minute));
    let is_own = |(resource, _): &(&Resource, &Averages)| **resource == Resource::ServerProcessor;
    let own = load.model.resources().find(is_own).map(|(_, averages)| averages.minute);
    match (resource, own) {
        (Resource::Processor | Resource::ProcessorStall | Resource::ServerStall, Some(own)) => {
            format!("{resource} is the bottleneck: {over}; {} is this server's", percent(own))
        }
        _ => format!("{resource} is the bottleneck: {over}"),
    }
}

fn row(resource: &Resource, averages: &Averages) -> Value {
    json!({
        "resource": resource.kind(),
        "device": resource.device(),
        "now": averages.now.get(),
        "second": averages.second.get(),
        "minute": averages.minute.get(),
        "five_minutes": averages.five_minutes.get(),
    })
}

/// Shows rates; the time of calls is known if it is measured.
fn rates(rates: &Rates, is_measured: bool) -> Value {
    json!({
        "calls_per_second": rates.calls,
        "received_bytes_per_second": rates.received_bytes,
        "sent_bytes_per_second": rates.sent_bytes,
        "service_seconds_per_second": is_measured.then_some(rates.service),
    })
}

fn client(load: &Load, share: &UserShare<std::net::IpAddr>) -> Value {
    json!({
        "client": share.key.to_string(),
        "connections": load.connections.get(&share.key),
        "now": rates(&share.now, load.is_measured),
        "minute": rates(&share.minute, load.is_measured),
    })
}

fn exports(load: &Load, plan: &Plan) -> Vec<Value> {
    let path = |id: u32| {
        let export = plan.export(ExportId(id));
        export.map_or_else(|| id.to_string(), |export| export.path().display().to_string())
    };
    let shares = load.exports.busiest(LOAD_CLIENTS_SHOWN);
    let shown = |share: &UserShare<u32>| {
        json!({
            "export": path(share.key),
            "now": share.now.calls,
            "minute": share.minute.calls,
            "service_seconds_per_second": share.minute.service,
        })
    };
    shares.iter().map(shown).collect()
}

fn operation(load: &OperationLoad<OperationName>) -> Value {
    let OperationName { program, version, operation } = load.key;
    json!({
        "program": program,
        "version": version,
        "operation": operation,
        "now": load.now,
        "minute": load.minute,
        "failed": load.failed,
        "median_seconds": load.median.as_ref().map(Duration::as_secs_f64),
        "p99_seconds": load.p99.as_ref().map(Duration::as_secs_f64),
    })
}

fn event(share: &UserShare<&'static str>) -> Value {
    json!({ "event": share.key, "now": share.now.calls, "minute": share.minute.calls })
}
