use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use crate::connection_limit::ConnectionBounds;
use crate::http_service::HttpService;
use crate::limits::{METRICS_CONNECTION_SECONDS, METRICS_CONNECTIONS_MAX};

/// Offers the text of `render` to Prometheus, at `/metrics` of a socket that listens already.
///
/// # Errors
/// The system gives no thread, or none of what a thread needs.
pub fn serve_metrics(
    listener: TcpListener,
    render: impl Fn() -> String + Send + Sync + 'static,
) -> io::Result<HttpService> {
    let render = Arc::new(render);
    let page = move || {
        let text = render();
        async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    let bounds = ConnectionBounds {
        connections: METRICS_CONNECTIONS_MAX,
        seconds: METRICS_CONNECTION_SECONDS,
        idle_seconds: METRICS_CONNECTION_SECONDS,
    };
    HttpService::start("metrics", listener, bounds, Router::new().route("/metrics", get(page)))
}
