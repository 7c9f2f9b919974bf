use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use comity_server::control::{Answer, Request};

use super::WebState;
use crate::grant_admin::is_digest;

/// Performs a request of the control socket that the page may make. It may wait for a name server,
/// so it runs on a thread of its own.
pub(super) async fn ask(State(state): State<WebState>, body: Bytes) -> Response {
    let request = match serde_json::from_slice::<Request>(&body) {
        Ok(request) if is_for_page(&request) => request,
        Ok(_) => return failed(StatusCode::FORBIDDEN, "the page may not ask for that"),
        Err(error) => return failed(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let work = move || (state.perform)(request);
    match tokio::task::spawn_blocking(work).await {
        Ok(Answer::Done(value)) => {
            ([(CONTENT_TYPE, "application/json")], value.to_string()).into_response()
        }
        Ok(Answer::Failed(why)) => failed(StatusCode::UNPROCESSABLE_ENTITY, &why),
        Err(_) => failed(StatusCode::INTERNAL_SERVER_ERROR, "the request failed; see the log"),
    }
}

/// Returns whether the page may make a request. It may read, and revoke credentials by digest. It
/// may not revoke keys, or change the configuration or accounts.
fn is_for_page(request: &Request) -> bool {
    match request {
        Request::RevokeGrant { what } => is_digest(what),
        Request::Status
        | Request::Load
        | Request::Exports { .. }
        | Request::Clients { .. }
        | Request::Client { .. }
        | Request::Waits { .. }
        | Request::Accounts
        | Request::Placements { .. }
        | Request::HeldGrants { .. }
        | Request::EndingGrants
        | Request::Why { .. }
        | Request::Explain { .. } => true,
        Request::Reload
        | Request::Migrate { .. }
        | Request::CancelMigration
        | Request::Cluster
        | Request::ClusterMove { .. }
        | Request::ClusterDrain { .. }
        | Request::ClusterUndrain { .. }
        | Request::Advise { .. }
        | Request::PlacementFiles { .. }
        | Request::PlacementStored { .. }
        | Request::PlacementBytes { .. }
        | Request::PlacementTry { .. }
        | Request::PlacementLabels { .. }
        | Request::PlacementRebuild { .. }
        | Request::LogLevel { .. }
        | Request::Evict { .. }
        | Request::BindAccount { .. }
        | Request::PlacementMove { .. }
        | Request::PlacementDrained { .. }
        | Request::UnbindAccount { .. } => false,
    }
}

fn failed(status: StatusCode, why: &str) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], why.to_owned()).into_response()
}
