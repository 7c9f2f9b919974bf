use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// The load of a server, as it answers [`comity_server::control::Request::Load`].
#[derive(Debug, Deserialize)]
pub(super) struct Readout {
    pub(super) uptime_seconds: u64,
    pub(super) grace_left_seconds: u64,
    pub(super) verdict: String,
    pub(super) resources: Vec<ResourceRow>,
    pub(super) total: Rates,
    pub(super) clients: Vec<ClientRow>,
    pub(super) clients_count: u64,
    pub(super) exports: Vec<ExportRow>,
    pub(super) operations: Vec<OperationRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) waits: Vec<WaitRow>,
    pub(super) waits_count: u64,
    pub(super) is_measured: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ResourceRow {
    pub(super) resource: String,
    pub(super) device: Option<String>,
    pub(super) second: f64,
    pub(super) minute: f64,
    pub(super) five_minutes: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Rates {
    pub(super) calls_per_second: f64,
    pub(super) received_bytes_per_second: f64,
    pub(super) sent_bytes_per_second: f64,
    /// Seconds that calls took in a second, if that is measured.
    pub(super) service_seconds_per_second: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ClientRow {
    pub(super) client: String,
    pub(super) connections: Option<u64>,
    pub(super) now: Rates,
    pub(super) minute: Rates,
}

#[derive(Debug, Deserialize)]
pub(super) struct ExportRow {
    pub(super) export: String,
    pub(super) now: f64,
    pub(super) minute: f64,
    pub(super) service_seconds_per_second: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct OperationRow {
    pub(super) program: String,
    pub(super) version: u32,
    pub(super) operation: String,
    pub(super) now: f64,
    pub(super) minute: f64,
    pub(super) failed: f64,
    pub(super) median_seconds: Option<f64>,
    pub(super) p99_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct EventRow {
    pub(super) event: String,
    pub(super) now: f64,
    pub(super) minute: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct WaitRow {
    pub(super) kind: String,
    pub(super) client: Option<String>,
    pub(super) waits_for: Option<String>,
    pub(super) age_seconds: u64,
    pub(super) export: Option<String>,
    pub(super) fileid: Option<u64>,
}

impl Readout {
    /// Reads the answer of a server.
    ///
    /// # Errors
    /// If a part is missing, as in an answer of a server of another version.
    pub(super) fn parse(answer: Value) -> Result<Self> {
        serde_json::from_value(answer).context(
            "the server's answer is not understood: the server and this program are of \
             different versions; restart the server",
        )
    }
}
