//! Counters of exports, clients' state and grants, for the metrics page.

use comity_export::{Counts, Exports, Plan};
use comity_grants::GrantCounts;
use comity_nfs4::{Counted, Memory, OperationCounters};
use comity_server::metrics::{append_counters, append_numbers};
use comity_state::{NoDirectory, Totals};
use comity_store::Store;

type Row = ([(&'static str, String); 2], Counts);

/// A counter: its name, its description, and the function that reads it.
type Family = (&'static str, &'static str, fn(&Counts) -> u64);

/// Appends the counters of all domains, of clients without a domain, and of peers without an
/// export.
pub(crate) fn append(text: &mut String, exports: &Exports) {
    let rows = rows(&exports.current());
    let families: [Family; 3] = [
        ("comity_refused_calls_total", "Calls that were not let in, by domain or client.", |c| {
            c.refused
        }),
        ("comity_squashed_calls_total", "Calls made as the anonymous user or group.", |c| {
            c.squashed
        }),
        ("comity_hidden_entries_total", "Entries, names and handles that a cloak hid.", |c| {
            c.hidden
        }),
    ];
    for (name, help, number) in families {
        let samples = rows.iter().map(|(labels, counts)| (&labels[..], number(counts)));
        append_counters(text, name, help, samples);
    }
    let help = "Calls of peers that no export is offered to.";
    append_numbers(text, &[("comity_unlisted_calls_total", help, exports.refused())]);
}

/// Appends how often each operation of NFSv4 was executed in COMPOUNDs.
pub(crate) fn append_operations(text: &mut String, operations: &OperationCounters) {
    let labels = |operation: &str, outcome: &str| {
        [("operation", operation.to_owned()), ("outcome", outcome.to_owned())]
    };
    let rows: Vec<_> = operations
        .counted()
        .into_iter()
        .flat_map(|counted| {
            let Counted { operation, ok, failed } = counted;
            [(labels(operation, "ok"), ok), (labels(operation, "failed"), failed)]
        })
        .collect();
    let (name, help) = ("comity_nfs4_operations_total", "Operations of NFSv4 inside of COMPOUNDs.");
    append_counters(text, name, help, rows.iter().map(|(labels, count)| (&labels[..], *count)));
}

/// Appends the state of NFSv4 clients and NFSv3 hosts, and what happened to it.
pub(crate) fn append_state(text: &mut String, memory: &Memory) {
    let (census, totals) = (memory.engine.census(), memory.engine.totals());
    let grace = memory.engine.grace_left(memory.clock.now()).as_secs();
    let gauges = [
        ("comity_clients", "Clients of NFSv4 and hosts that lock.", census.clients),
        ("comity_sessions", "Sessions of clients.", census.sessions),
        ("comity_opens", "Opens of all clients.", census.opens),
        ("comity_locks", "Byte ranges that are locked.", census.locks),
        ("comity_lock_waiters", "Locks that somebody waits for now.", census.waits),
        ("comity_delegations", "Delegations that clients hold.", census.delegations),
        (
            "comity_directory_delegations",
            "Delegations of directories among them.",
            census.directories,
        ),
        ("comity_layouts", "Layouts (pNFS) that clients hold.", census.layouts),
        ("comity_reply_cache_bytes", "Bytes set aside for replies.", census.reply_cache_bytes),
        ("comity_held_bytes", "Bytes counted for all that clients hold.", census.held_bytes),
    ];
    append_numbers(text, &gauges.map(|(name, help, count)| (name, help, count as u64)));
    let help = "Time in which only reclaims are let in.";
    append_numbers(text, &[("comity_grace_left_seconds", help, grace)]);
    append_totals(text, &totals);
    append_directories(text, &totals);
}

/// Appends the events in the state of clients since the server started.
fn append_totals(text: &mut String, totals: &Totals) {
    append_numbers(
        text,
        &[
            ("comity_recalls_sent_total", "Delegations and layouts recalled.", totals.recalls_sent),
            (
                "comity_recalls_returned_total",
                "Delegations and layouts given back while they were recalled.",
                totals.recalls_returned,
            ),
            (
                "comity_recalls_timed_out_total",
                "Recalls that were not heeded in time.",
                totals.recalls_overdue,
            ),
            (
                "comity_recalls_any_total",
                "Clients asked to keep fewer delegations.",
                totals.recalls_any,
            ),
            (
                "comity_slot_recalls_total",
                "Sessions asked to use fewer slots.",
                totals.slot_recalls,
            ),
            (
                "comity_slot_recalls_heeded_total",
                "Times that slots went because a client had followed.",
                totals.slot_recalls_heeded,
            ),
            (
                "comity_delegations_revoked_total",
                "Delegations taken back by force.",
                totals.delegations_revoked,
            ),
            (
                "comity_rights_ended_total",
                "Opens, locks and delegations revoked because a right ended.",
                totals.rights_ended,
            ),
            ("comity_lock_waits_total", "Locks somebody had to wait for.", totals.lock_waits),
            (
                "comity_reply_cache_hits_total",
                "Requests answered as they had been before.",
                totals.replies_again,
            ),
            (
                "comity_clients_evicted_total",
                "Clients sent away with all they had.",
                totals.clients_evicted,
            ),
        ],
    );
}

/// Appends how many directories were delegated and recalled, and why requests were refused.
fn append_directories(text: &mut String, totals: &Totals) {
    let (granted, recalled) = (totals.directories_granted, totals.directories_recalled);
    append_numbers(
        text,
        &[
            ("comity_directory_delegations_granted_total", "Directories delegated.", granted),
            ("comity_directory_delegations_recalled_total", "Directories recalled.", recalled),
            (
                "comity_directory_notifications_total",
                "Notifications of changes in directories, one for each change and holder.",
                totals.directory_notices,
            ),
            (
                "comity_directory_child_notifications_total",
                "Notifications of changed attributes of objects in directories.",
                totals.child_notices,
            ),
            (
                "comity_directory_notification_calls_total",
                "CB_NOTIFYs, each with one notification or more.",
                totals.directory_notice_calls,
            ),
            (
                "comity_directory_calls_saved_total",
                "Calls that ended delegations of directories have saved, estimated.",
                totals.directory_calls_saved,
            ),
            (
                "comity_directory_calls_caused_total",
                "Calls that recalls of directories and notifications have caused.",
                totals.directory_calls_caused,
            ),
        ],
    );
    let reasons = NoDirectory::ALL.iter().zip(totals.directories_refused);
    let rows: Vec<_> =
        reasons.map(|(why, count)| ([("reason", why.name().to_owned())], count)).collect();
    let name = "comity_directory_delegations_refused_total";
    let help = "Requests for directories that were refused.";
    append_counters(text, name, help, rows.iter().map(|(labels, count)| (&labels[..], *count)));
}

/// Appends whether clients' state can be stored.
pub(crate) fn append_store(text: &mut String, store: &Store) {
    let (name, help) = ("comity_state_store_broken", "Whether the state of clients is not stored.");
    append_numbers(text, &[(name, help, store.is_broken().into())]);
}

/// Appends the credentials of keys, the outcomes of submissions, and the number of evaluations.
pub(crate) fn append_grants(text: &mut String, counts: &GrantCounts) {
    let gauges = [
        ("comity_grants_keys", "Keys that hold credentials.", counts.keys),
        ("comity_grants_credentials", "Credentials that keys hold.", counts.credentials),
        ("comity_grants_credential_bytes", "Bytes of these.", counts.credential_bytes),
        ("comity_grants_revocations", "Revocations remembered.", counts.revocations),
        ("comity_grants_creations", "Objects whose creator is known.", counts.creations),
        ("comity_grants_revoked_total", "Credentials and keys revoked.", counts.revoked),
        ("comity_grants_queries_total", "Decisions by evaluation.", counts.queries),
        ("comity_grants_cache_hits_total", "Decisions that were known.", counts.cache_hits),
    ];
    append_numbers(text, &gauges);
    let (name, help) = ("comity_grants_submitted_total", "Credentials submitted, by outcome.");
    let rows = counts.submitted.map(|(outcome, count)| ([("outcome", outcome.to_owned())], count));
    append_counters(text, name, help, rows.iter().map(|(labels, count)| (&labels[..], *count)));
}

fn rows(plan: &Plan) -> Vec<Row> {
    let mut rows = Vec::new();
    for export in plan.exports() {
        let path = export.path().display().to_string();
        for counted in export.counters() {
            let counts = counted.counts();
            if counted.is_domain() || counts != Counts::default() {
                let domain = counted.name().to_owned();
                rows.push(([("export", path.clone()), ("domain", domain)], counts));
            }
        }
    }
    rows
}
