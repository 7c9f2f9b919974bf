//! The adapter to the crate `fuser`: converts its requests and replies to and from
//! [`crate::mounted::Mounted`].

mod convert;
mod filesystem;
mod replies;
mod session;

pub(crate) use session::{FuseSession, SessionOptions, start};
