//! A client of NFS versions 3 and 4.1: one call at a time, and the replies as they came.
//!
//! **Answers:** what a server says to a call, as bytes and decoded.
//!
//! **May not know:** why it is called: who measures, proves or copies stands above.

pub mod file;
pub mod limits;
pub mod nfs3;
pub mod nfs4;
pub mod rpc;
