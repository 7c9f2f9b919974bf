//! The only place that knows the crate `fuser`: its requests and replies in terms of
//! [`crate::mounted::Mounted`].

mod convert;
mod filesystem;
mod replies;
mod session;

pub(crate) use session::{FuseSession, SessionOptions, start};
