//! State that rests on grants: who has it, and its end when the right ends.

mod ended;
mod held;
mod lapsed;

pub use ended::GrantedAccess;
pub use held::GrantedFiles;
