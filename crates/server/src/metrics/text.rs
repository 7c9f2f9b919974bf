//! The metrics in Prometheus' text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use comity_credential::ChannelKind;

use super::histogram::{Sum, bound_nanoseconds};
use super::recorder::{Ending, Key, Metrics, Row, ThreadCounters};
use super::sums::{counts, latency};
use crate::counters::ServerStats;

impl Metrics {
    /// Returns all metrics; `export_name` returns the names of exports.
    #[must_use]
    pub fn render(
        &self,
        shell: &ServerStats,
        export_name: &dyn Fn(u32) -> Option<String>,
    ) -> String {
        let (rows, threads) = self.snapshot();
        let mut text = String::new();
        calls(&mut text, &rows, &counts(&threads), export_name);
        durations(&mut text, &rows, &threads);
        shell_numbers(&mut text, shell);
        text
    }
}

/// Appends a family of counters, each with its labels; `name` and labels are in Prometheus' syntax.
pub fn append_counters<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = (&'a [(&'a str, String)], u64)>,
) {
    head(text, name, "counter", help);
    labelled(text, name, samples);
}

/// Appends a family of ratios, each with its labels.
pub fn append_ratios<'a>(
    text: &mut String,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = (&'a [(&'a str, String)], f64)>,
) {
    head(text, name, "gauge", help);
    labelled(text, name, samples);
}

fn labelled<'a>(
    text: &mut String,
    name: &str,
    samples: impl Iterator<Item = (&'a [(&'a str, String)], impl std::fmt::Display)>,
) {
    for (labels, value) in samples {
        let spelled = |(label, value): &(&str, String)| format!("{label}=\"{}\"", escaped(value));
        let labels = labels.iter().map(spelled).collect::<Vec<_>>().join(",");
        line(text, format_args!("{name}{{{labels}}} {value}"));
    }
}

/// Appends metrics without labels: name, help text, value. Names that end in `_total` are counters,
/// the others gauges.
pub fn append_numbers(text: &mut String, numbers: &[(&str, &str, u64)]) {
    for (name, help, value) in numbers {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        head(text, name, kind, help);
        line(text, format_args!("{name} {value}"));
    }
}

fn calls(
    text: &mut String,
    rows: &[Row],
    counts: &BTreeMap<Key, u64>,
    export_name: &dyn Fn(u32) -> Option<String>,
) {
    head(text, "comity_rpc_calls_total", "counter", "Calls answered.");
    for ((row, ending, export), count) in counts {
        let Some(row) = rows.get(*row) else { continue };
        let status = match ending {
            Ending::Status(status) => (row.status_name)(*status),
            Ending::Rpc(name) => name,
        };
        let export = export.map(|number| export_name(number).unwrap_or_else(|| number.to_string()));
        let export = escaped(&export.unwrap_or_default());
        let labels = labels(row);
        line(
            text,
            format_args!(
                "comity_rpc_calls_total{{{labels},status=\"{status}\",export=\"{export}\"}} {count}"
            ),
        );
    }
}

fn durations(text: &mut String, rows: &[Row], threads: &[Arc<ThreadCounters>]) {
    let name = "comity_rpc_call_duration_seconds";
    head(text, name, "histogram", "From the beginning of a call to its reply.");
    for (at, row) in rows.iter().enumerate() {
        let sum = latency(threads, at);
        if sum.count() > 0 {
            histogram(text, name, &labels(row), &sum);
        }
    }
}

fn histogram(text: &mut String, name: &str, labels: &str, sum: &Sum) {
    let mut below = 0;
    for (bucket, count) in sum.buckets.iter().enumerate() {
        below += count;
        let bound = bound_nanoseconds(bucket).map_or_else(|| "+Inf".to_owned(), seconds);
        line(text, format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {below}"));
    }
    let total = seconds(sum.nanoseconds);
    line(text, format_args!("{name}_sum{{{labels}}} {total}"));
    line(text, format_args!("{name}_count{{{labels}}} {below}"));
}

fn shell_numbers(text: &mut String, shell: &ServerStats) {
    let counters = [
        ("comity_received_bytes_total", "Bytes received from clients.", shell.received_bytes),
        ("comity_sent_bytes_total", "Bytes sent to clients.", shell.sent_bytes),
        ("comity_receives_total", "System calls that received.", shell.receives),
        ("comity_sends_total", "Batches of replies sent.", shell.sends),
        ("comity_waits_total", "Waits for clients.", shell.waits),
        ("comity_records_total", "RPC records received.", shell.records),
        ("comity_replayed_calls_total", "Calls sent again and not done twice.", shell.replayed),
        ("comity_deferred_calls_total", "Calls that waited for stable storage.", shell.lates),
        ("comity_deferred_rounds_total", "Times such calls were finished.", shell.late_rounds),
        ("comity_desk_hand_overs_total", "Times a sleeping call was left.", shell.hand_overs),
        ("comity_backlogs_total", "Times a client did not read its replies.", shell.backlogs),
        ("comity_call_panics_total", "Calls that failed by our fault.", shell.panics),
        ("comity_connections_accepted_total", "Connections let in.", shell.accepted),
        ("comity_connections_refused_total", "Connections turned away.", shell.refused),
    ];
    append_numbers(text, &counters);
    ended(text, shell);
    tls(text, shell);
    let gauges = [
        ("comity_connections", "Connections open.", shell.connections),
        ("comity_buffered_bytes", "Bytes held for clients.", shell.buffered_bytes),
        ("comity_threads", "Threads that serve.", shell.threads),
    ];
    append_numbers(text, &gauges);
}

fn ended(text: &mut String, shell: &ServerStats) {
    let name = "comity_connections_ended_total";
    head(text, name, "counter", "Connections that ended, by reason.");
    for (reason, count) in shell.ended() {
        line(text, format_args!("{name}{{reason=\"{reason}\"}} {count}"));
    }
}

/// Appends the handshakes by result, and the connections by channel.
fn tls(text: &mut String, shell: &ServerStats) {
    let failures = ["handshake", "handshake_slow", "early_bytes"];
    let failed = shell.ended().filter(|(reason, _)| failures.contains(reason));
    let [tls, mtls] = shell.handshakes;
    let name = "comity_tls_handshakes_total";
    head(text, name, "counter", "TLS handshakes that were begun, by result.");
    for (result, count) in [("tls", tls), ("mtls", mtls)].into_iter().chain(failed) {
        line(text, format_args!("{name}{{result=\"{result}\"}} {count}"));
    }
    let name = "comity_channel_connections";
    head(text, name, "gauge", "Connections open, by channel.");
    for (kind, count) in ChannelKind::ALL.into_iter().zip(shell.by_channel) {
        line(text, format_args!("{name}{{channel=\"{}\"}} {count}", kind.name()));
    }
}

fn labels(row: &Row) -> String {
    let Row { program, version, procedure, .. } = row;
    format!("program=\"{program}\",version=\"{version}\",procedure=\"{procedure}\"")
}

fn head(text: &mut String, name: &str, kind: &str, help: &str) {
    line(text, format_args!("# HELP {name} {help}"));
    line(text, format_args!("# TYPE {name} {kind}"));
}

fn line(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = text.write_fmt(arguments);
    text.push('\n');
}

fn seconds(nanoseconds: u64) -> String {
    (nanoseconds as f64 / 1e9).to_string()
}

/// Escapes a label's value as the text format requires.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::histogram::Histogram;

    #[test]
    fn a_label_of_any_bytes_stays_one_label_of_one_line() {
        let mut text = String::new();
        let labels = [("client", "a\"} 1\nb\\".to_owned()), ("user", String::new())];
        append_counters(&mut text, "x_total", "Help.", [(&labels[..], 7)].into_iter());
        let expected = "# HELP x_total Help.\n# TYPE x_total counter\n\
                        x_total{client=\"a\\\"} 1\\nb\\\\\",user=\"\"} 7\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn numbers_are_counters_or_gauges_by_their_names() {
        let mut text = String::new();
        append_numbers(&mut text, &[("a_total", "A.", 1), ("total_b", "B.", u64::MAX)]);
        append_ratios(&mut text, "r", "R.", [(&[][..], 0.5)].into_iter());
        let types: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
        assert_eq!(types, ["a_total counter", "total_b gauge", "r gauge"]);
        assert!(text.contains("\ntotal_b 18446744073709551615\n"), "{text}");
        assert!(text.ends_with("r{} 0.5\n"), "{text}");
    }

    #[test]
    fn buckets_of_a_histogram_count_all_calls_below_their_bound() {
        let histogram_of = Histogram::new();
        [100, 300, 300, 1 << 40]
            .into_iter()
            .for_each(|nanoseconds| histogram_of.record(nanoseconds));
        let mut sum = Sum::new();
        sum.add(&histogram_of);
        let mut text = String::new();
        histogram(&mut text, "t", "p=\"READ\"", &sum);
        let counts: Vec<u64> = text
            .lines()
            .filter(|line| line.starts_with("t_bucket"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert_eq!(counts[..3], [1, 3, 3]);
        assert!(counts.is_sorted());
        assert_eq!(counts.last(), Some(&4), "the last bucket has every call");
        assert!(text.contains("le=\"0.000000256\"} 1\n"), "{text}");
        assert!(text.contains("le=\"+Inf\"} 4\n"), "{text}");
        assert!(
            text.ends_with("t_sum{p=\"READ\"} 1099.511628476\nt_count{p=\"READ\"} 4\n"),
            "{text}"
        );
    }
}
