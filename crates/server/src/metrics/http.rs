use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::connection_limit::ConnectionBounds;
use crate::http_service::{HttpError, HttpService};
use crate::limits::{METRICS_CONNECTION_SECONDS, METRICS_CONNECTIONS_MAX};

/// Offers what `render` says to Prometheus, at `http://ADDRESS/metrics`.
///
/// # Errors
/// [`HttpError`], with what to do about it.
pub fn serve_metrics(
    address: SocketAddr,
    render: impl Fn() -> String + Send + Sync + 'static,
) -> Result<HttpService, HttpError> {
    let render = Arc::new(render);
    let page = move || {
        let text = render();
        async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    let bounds = ConnectionBounds {
        connections: METRICS_CONNECTIONS_MAX,
        seconds: METRICS_CONNECTION_SECONDS,
    };
    HttpService::start("metrics", address, bounds, Router::new().route("/metrics", get(page)))
}
