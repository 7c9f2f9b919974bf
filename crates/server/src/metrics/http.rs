use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

use super::connection_limit::ConnectionLimit;
use crate::listen::{ListenError, listen};

/// The page that Prometheus reads, on an address and a thread of its own.
pub struct MetricsPage {
    address: SocketAddr,
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// Why there is no such page.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// Its address cannot be listened on.
    #[error("metrics page: {0}")]
    Listen(#[from] ListenError),
    /// The system gives no thread.
    #[error("metrics page: {0}")]
    System(#[from] io::Error),
}

impl MetricsPage {
    /// Offers what `render` says at `http://ADDRESS/metrics`.
    ///
    /// # Errors
    /// [`PageError`], with what to do about it.
    pub fn start(
        address: SocketAddr,
        render: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Self, PageError> {
        let listener = listen(address)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            let served = runtime.block_on(serve(listener, Arc::new(render), stopped));
            if let Err(error) = served {
                tracing::error!(%error, "the metrics page ended");
            }
        })?;
        Ok(Self { address, stop, thread })
    }

    /// The address of the page.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes it away.
    pub fn shutdown(self) {
        // Refused if the page has ended by itself.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn serve(
    listener: std::net::TcpListener,
    render: Arc<dyn Fn() -> String + Send + Sync>,
    stopped: tokio::sync::oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let page = move || {
        let text = render();
        async move { ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text) }
    };
    let router = Router::new().route("/metrics", get(page));
    tokio::select! {
        served = async { axum::serve(ConnectionLimit::new(listener), router).await } => served,
        _ = stopped => Ok(()),
    }
}
