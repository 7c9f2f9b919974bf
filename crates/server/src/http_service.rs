use std::io;
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use axum::Router;

use crate::connection_limit::{ConnectionBounds, ConnectionLimit};
use crate::limits::HTTP_BLOCKING_THREADS;

/// Pages that are served by HTTP, at a separate address and on a separate thread.
pub struct HttpService {
    address: SocketAddr,
    stop: tokio::sync::oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl HttpService {
    /// Serves `router` at a socket that listens already and does not block; `name` is that of the
    /// page in the log and of the thread.
    ///
    /// # Errors
    /// The system gives no thread, or none of what a thread needs.
    pub fn start(
        name: &'static str,
        listener: TcpListener,
        bounds: ConnectionBounds,
        router: Router,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .max_blocking_threads(HTTP_BLOCKING_THREADS)
            .enable_all()
            .build()?;
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let serve = move || {
            let served = runtime.block_on(serve(listener, bounds, router, stopped));
            if let Err(error) = served {
                tracing::error!(%error, "the {name} page ended");
            }
            // Requests under way are not waited for.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(serve)?;
        Ok(Self { address, stop, thread })
    }

    /// The address of the pages.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the service.
    pub fn shutdown(self) {
        // The message is refused if the service has ended by itself.
        let _ = self.stop.send(());
        let _ = self.thread.join();
    }
}

async fn serve(
    listener: TcpListener,
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
