//! Sockets handed over by a service manager (sd_listen_fds(3)).

use std::net::TcpListener;

use rustix::net::SocketType;
use rustix::net::sockopt::{socket_acceptconn, socket_type};

use crate::sys;

/// The first descriptor that is handed over.
const FIRST: i32 = 3;

/// Returns the listening sockets that a service manager passed to this process, if any. It must be
/// called once, before the process opens anything.
#[must_use]
pub fn inherited_listeners() -> Vec<TcpListener> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    let is_for_us = number("LISTEN_PID") == Some(std::process::id() as i32);
    let count = number("LISTEN_FDS").filter(|_| is_for_us).unwrap_or(0);
    (FIRST..FIRST.saturating_add(count)).filter_map(listener).collect()
}

fn listener(descriptor: i32) -> Option<TcpListener> {
    let owned = sys::inherited(descriptor)?;
    let listens = socket_acceptconn(&owned) == Ok(true);
    let is_stream = socket_type(&owned) == Ok(SocketType::STREAM);
    if !listens || !is_stream {
        tracing::warn!(
            descriptor,
            "a descriptor from the service manager is not a listening socket"
        );
        return None;
    }
    Some(owned.into())
}
