//! NFSv3 (RFC 1813) and MOUNT version 3 (its appendix I), verb by verb, over a view.
//!
//! **Answers:** which results a call of one of these procedures gets, and which barrier must have
//! ended before its reply is sent. Each verb has a file: [`Nfs3`] and [`Mount`] are tables of them.
//!
//! **May not know:** sockets and threads, which backend a file system is, how ids look on disk, how
//! an export's rules came about.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod attributes;
mod conflicts;
mod delegated_attr;
mod dispatch;
mod forward;
pub mod limits;
mod listing;
mod mount;
mod nlm;
mod nsm;
mod program;
mod reply;
mod request;
mod settings;
mod status;
mod system_port;
mod table;
mod time;
mod verbs;

pub use forward::{CallForwarder, Forwarded};
pub use mount::Mount;
pub use nlm::{Grant, Grants, Message, Nlm};
pub use nsm::Nsm;
pub use program::Nfs3;
pub use status::nfsstat3;
