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
use tokio::time::{Instant, Sleep, sleep};

/// Bounds on the connections to a page.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionBounds {
    /// Most connections.
    pub connections: usize,
    /// Seconds after which a connection is closed, even if it is active.
    pub seconds: u64,
    /// Seconds after which a connection is closed on which no byte comes or goes, so that idle
    /// ones do not keep the places of others.
    pub idle_seconds: u64,
}

/// Accepts a bounded number of connections, each for a bounded time.
pub(crate) struct ConnectionLimit {
    listener: TcpListener,
    places: Arc<Semaphore>,
    time: Duration,
    idle_time: Duration,
}

/// A connection that was accepted.
pub(crate) struct LimitedConnection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    idle_end: Pin<Box<Sleep>>,
    idle_time: Duration,
    _place: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    pub(crate) fn new(listener: TcpListener, bounds: ConnectionBounds) -> Self {
        let places = Arc::new(Semaphore::new(bounds.connections));
        let time = Duration::from_secs(bounds.seconds);
        Self { listener, places, time, idle_time: Duration::from_secs(bounds.idle_seconds) }
    }
}

impl ConnectionLimit {
    fn limited(&self, stream: TcpStream, place: OwnedSemaphorePermit) -> LimitedConnection {
        LimitedConnection {
            stream,
            end: Box::pin(sleep(self.time)),
            idle_end: Box::pin(sleep(self.idle_time)),
            idle_time: self.idle_time,
            _place: place,
        }
    }
}

impl Listener for ConnectionLimit {
    type Io = LimitedConnection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (LimitedConnection, SocketAddr) {
        loop {
            let (stream, peer) = Listener::accept(&mut self.listener).await;
            // A connection above the bound is closed at once.
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return (self.limited(stream, place), peer);
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
            || self.idle_end.as_mut().poll(context).is_ready()
    }

    /// Begins the idle time again if bytes came or went.
    fn note<T>(&mut self, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.idle_end.as_mut().reset(Instant::now() + self.idle_time);
        }
        outcome
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
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.note(read)
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
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
