//! RPC-with-TLS (RFC 9289) on the server's port.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[path = "../toy/mod.rs"]
mod toy;

mod attacks;
mod client;
mod served;
mod service;
