//! The page about the disk cache of a mount, for Prometheus: `-o metrics=ADDRESS:PORT`.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use anyhow::{Context, Result};
use comity_cache::{Cache, CacheStatus};
use comity_server::HttpService;
use comity_server::metrics::{append_numbers, serve_metrics};

/// Reads the value of the option.
///
/// # Errors
/// It is no address with a port.
pub(crate) fn address(value: &str) -> Result<SocketAddr> {
    value.parse().with_context(|| {
        format!("-o metrics={value}: give an address and a port, as in 127.0.0.1:9050")
    })
}

/// Serves the page at an address.
///
/// # Errors
/// The mount has no disk cache, or the system does not let the program listen there.
pub(crate) fn serve(address: SocketAddr, cache: Option<&Arc<Cache>>) -> Result<HttpService> {
    let cache = cache.context("-o metrics: this mount has no disk cache; add -o dc_enable")?;
    let failed = || format!("-o metrics={address}: cannot listen there; choose another address");
    let listener = TcpListener::bind(address).with_context(failed)?;
    listener.set_nonblocking(true)?;
    let cache = Arc::clone(cache);
    Ok(serve_metrics(listener, move || page(&cache.status()))?)
}

fn page(status: &CacheStatus) -> String {
    let mut text = String::new();
    let reads = [
        ("comity_cache_hit_bytes_total", "Bytes that reads got from the cache.", status.hit_bytes),
        ("comity_cache_miss_bytes_total", "Bytes that reads fetched.", status.miss_bytes),
        ("comity_cache_spared_calls_total", "Calls that were not sent.", status.spared_calls),
        ("comity_cache_partial_files", "Files read in part, to be filled.", status.partial_files),
    ];
    let age_seconds = status.dirty_age_milliseconds / 1_000;
    let writes = [
        ("comity_cache_dirty_bytes", "Written bytes that are not sent yet.", status.dirty_bytes),
        ("comity_cache_dirty_files", "Files with such bytes.", status.dirty_files),
        ("comity_cache_dirty_age_seconds", "The age of the oldest such bytes.", age_seconds),
        ("comity_cache_conflicts_total", "Files kept as conflicts.", status.conflicts),
    ];
    let is_usable = status.is_disk_usable.into();
    let disk = [
        ("comity_cache_disk_bytes", "Bytes on the cache disk, estimated.", status.disk_bytes),
        ("comity_cache_damaged_pages_total", "Damaged pages found there.", status.damaged_pages),
        ("comity_cache_disk_usable", "0 once the cache disk has failed, else 1.", is_usable),
    ];
    append_numbers(&mut text, &reads);
    append_numbers(&mut text, &writes);
    append_numbers(&mut text, &disk);
    text
}
