//! Requests to etcd over HTTP/1.1, with or without TLS, by an asynchronous client in a thread of
//! its own. Callers wait for its answers and run no runtime themselves.

use std::error::Error;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::ANSWER_BYTES_MAX;

/// An answer: its status, and its body unless that is too long; or the error in words.
type HttpAnswer = Result<(u16, Option<Bytes>), String>;

/// A member to which a request goes.
pub(super) struct MemberAddress {
    /// Host and port.
    pub(super) authority: String,
    /// The settings of TLS, and the name in the member's certificate.
    pub(super) tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
}

/// The thread of the client. It ends when this is dropped.
pub(super) struct HttpThread {
    runtime: Handle,
    _stop: oneshot::Sender<()>,
}

impl HttpThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start() -> std::io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (stop, stopped) = oneshot::channel::<()>();
        let handle = runtime.handle().clone();
        let run = move || {
            // An error says that the sender was dropped.
            let _ = runtime.block_on(stopped);
        };
        std::thread::Builder::new().name("etcd".to_owned()).spawn(run)?;
        Ok(Self { runtime: handle, _stop: stop })
    }

    /// Posts a JSON text; waits for the answer, for `patience` at most.
    pub(super) fn post(
        &self,
        (member, path): (MemberAddress, &'static str),
        text: String,
        patience: Duration,
    ) -> HttpAnswer {
        let (sender, receiver) = mpsc::channel();
        self.runtime.spawn(async move {
            let answer = timeout(patience, post(member, path, text)).await;
            let late = |_| format!("no answer within {} ms", patience.as_millis());
            // The caller may have given up.
            let _ = sender.send(answer.map_err(late).and_then(|answer| answer));
        });
        let stalled = |_| Err("the thread of the etcd client does not answer".to_owned());
        receiver.recv_timeout(patience + patience).unwrap_or_else(stalled)
    }
}

/// Posts a text on a new connection.
async fn post(member: MemberAddress, path: &'static str, text: String) -> HttpAnswer {
    let MemberAddress { authority, tls } = member;
    let stream = TcpStream::connect(&authority).await.map_err(|error| error.to_string())?;
    let Some((config, name)) = tls else {
        return post_on(stream, &authority, path, text).await;
    };
    let connected = TlsConnector::from(config).connect(name, stream).await;
    let stream = connected.map_err(|error| format!("TLS: {error}"))?;
    post_on(stream, &authority, path, text).await
}

async fn post_on(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    authority: &str,
    path: &'static str,
    text: String,
) -> HttpAnswer {
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.map_err(with_causes)?;
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(HOST, authority)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(text)))
        .map_err(|error| error.to_string())?;
    // The connection ends when the sender is dropped. Its errors are those of the request, too.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(with_causes)?;
    let (status, body) = (response.status().as_u16(), response.into_body());
    match Limited::new(body, ANSWER_BYTES_MAX).collect().await {
        Ok(body) => Ok((status, Some(body.to_bytes()))),
        Err(error) if error.is::<LengthLimitError>() => Ok((status, None)),
        Err(error) => Err(error.to_string()),
    }
}

/// An error with its causes: that of a refused certificate is below that of the connection.
fn with_causes(error: hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}
