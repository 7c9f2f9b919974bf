//! State that rests on grants: who has it, and its end when the right ends.

mod ended;
mod granted_files;
mod lapsed;

pub use ended::GrantedAccess;
pub use granted_files::GrantedFiles;
