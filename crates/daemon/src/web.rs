//! The web page of a running server: its load, clients, exports and grants.
//!
//! The page consists of one HTML, one CSS and one JavaScript file, which are compiled in. All data
//! come from `/api`, for requests with the token of the state folder in a header: no other site can
//! send that header, and no other user of the machine can read the token.

mod answers;
mod live;

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use comity_server::control::{self, Answer};
use comity_server::{ConnectionBounds, HttpService};

use crate::limits::{
    WEB_BODY_BYTES_MAX, WEB_CONNECTION_SECONDS, WEB_CONNECTIONS_MAX, WEB_IDLE_SECONDS,
};
use crate::web_token::Token;

/// Performs a request of the page.
pub(crate) type Perform = Arc<dyn Fn(control::Request) -> Answer + Send + Sync>;

/// The parts that requests need.
#[derive(Clone)]
struct WebState {
    perform: Perform,
    token: Arc<Token>,
    /// The last load report as text, and when it was made.
    load: Arc<Mutex<live::Latest>>,
}

/// The content security policy: only the page's own files are loaded, and no other page may embed
/// it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// Serves the page at a socket that listens on a loopback address.
///
/// # Errors
/// The system refused a thread or its resources.
pub(crate) fn serve(
    listener: TcpListener,
    token: Token,
    perform: Perform,
) -> io::Result<HttpService> {
    let state = WebState { perform, token: Arc::new(token), load: Arc::default() };
    let bounds = ConnectionBounds {
        connections: WEB_CONNECTIONS_MAX,
        seconds: WEB_CONNECTION_SECONDS,
        idle_seconds: WEB_IDLE_SECONDS,
    };
    HttpService::start("web", listener, bounds, router(state))
}

fn router(state: WebState) -> Router {
    let api = Router::new()
        .route("/api/ask", post(answers::ask))
        .route("/api/live", get(live::stream))
        .layer(from_fn_with_state(state.clone(), only_with_token));
    let file = |kind: &'static str, text: &'static str| {
        get(move || async move { ([(CONTENT_TYPE, kind)], text) })
    };
    Router::new()
        .route("/", file("text/html; charset=utf-8", include_str!("web/page.html")))
        .route("/page.css", file("text/css; charset=utf-8", include_str!("web/page.css")))
        .route("/page.js", file("text/javascript; charset=utf-8", include_str!("web/page.js")))
        .merge(api)
        .layer(DefaultBodyLimit::max(WEB_BODY_BYTES_MAX))
        .layer(from_fn(with_headers))
        .with_state(state)
}

async fn only_with_token(
    State(state): State<WebState>,
    headers: HeaderMap,
    request: Request,
    next: Next,
) -> Response {
    if state.token.is_in(&headers) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, "the token is missing or wrong; it is in web.token").into_response()
}

async fn with_headers(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers: [(HeaderName, &'static str); 4] = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
