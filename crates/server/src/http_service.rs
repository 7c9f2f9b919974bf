use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;

use axum::Router;

use crate::connection_limit::{ConnectionBounds, ConnectionLimit};
use crate::limits::HTTP_BLOCKING_THREADS;
use crate::listen::{ListenError, listen};

/// Pages that are served by HTTP, on an address and a thread of their own.
pub struct HttpService {
    address: SocketAddr,
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

/// The reason why no pages are served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Its address cannot be listened on.
    #[error("{0} page: {1}")]
    Listen(&'static str, ListenError),
    /// The system gives no thread.
    #[error("{0} page: {1}")]
    System(&'static str, io::Error),
}

impl HttpService {
    /// Serves `router` at an address; `name` is that of the page in errors and of the thread.
    ///
    /// # Errors
    /// [`HttpError`], with what to do about it.
    pub fn start(
        name: &'static str,
        address: SocketAddr,
        bounds: ConnectionBounds,
        router: Router,
    ) -> Result<Self, HttpError> {
        let listener = listen(address).map_err(|error| HttpError::Listen(name, error))?;
        let system = |error| HttpError::System(name, error);
        let address = listener.local_addr().map_err(system)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(HTTP_BLOCKING_THREADS)
            .enable_all()
            .build()
            .map_err(system)?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serve = move || {
            let served = runtime.block_on(serve(listener, bounds, router, stopped));
            if let Err(error) = served {
                tracing::error!(%error, "the {name} page ended");
            }
            // Requests under way are not waited for.
            runtime.shutdown_background();
        };
        let thread =
            std::thread::Builder::new().name(name.to_owned()).spawn(serve).map_err(system)?;
        Ok(Self { address, stop, thread })
    }

    /// The address of the pages.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes them away.
    pub fn shutdown(self) {
        // Refused if the service has ended by itself.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn serve(
    listener: std::net::TcpListener,
    bounds: ConnectionBounds,
    router: Router,
    stopped: tokio::sync::oneshot::Receiver<()>,
) -> io::Result<()> {
    let listener = ConnectionLimit::new(tokio::net::TcpListener::from_std(listener)?, bounds);
    tokio::select! {
        served = async { axum::serve(listener, router).await } => served,
        _ = stopped => Ok(()),
    }
}
