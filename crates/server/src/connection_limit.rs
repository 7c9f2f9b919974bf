use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

/// Bounds of the connections to a page.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionBounds {
    /// Connections at most.
    pub connections: usize,
    /// Seconds after which a connection is closed, whatever it does.
    pub seconds: u64,
}

/// Lets a bounded number of connections in, each for a bounded time.
pub(crate) struct ConnectionLimit {
    listener: TcpListener,
    places: Arc<Semaphore>,
    time: Duration,
}

/// A connection that was let in.
pub(crate) struct LimitedConnection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    _place: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    pub(crate) fn new(listener: TcpListener, bounds: ConnectionBounds) -> Self {
        let places = Arc::new(Semaphore::new(bounds.connections));
        Self { listener, places, time: Duration::from_secs(bounds.seconds) }
    }
}

impl Listener for ConnectionLimit {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            // One too many is closed at once.
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                let end = Box::pin(sleep(self.time));
                return (LimitedConnection { stream, end, _place: place }, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl LimitedConnection {
    /// Returns whether the connection's time is up.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        self.end.as_mut().poll(context).is_ready()
    }
}

const TIME_IS_UP: io::ErrorKind = io::ErrorKind::TimedOut;

impl AsyncRead for LimitedConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_over(context) {
            return Poll::Ready(Err(TIME_IS_UP.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for LimitedConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_over(context) {
            return Poll::Ready(Err(TIME_IS_UP.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
