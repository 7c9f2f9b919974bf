//! The minimal server: it makes the one system call that a request needs, and nothing else. It has
//! no XDR, no credentials and no state; requests have 100 bytes, replies 150.

mod call_templates;
mod server;
mod wire;
mod work;

pub use call_templates::{attributes_by_name, listing_with_handles, script};
pub use server::serve;
