//! Operations on delegations: they are granted by policy, recalled when another client conflicts
//! with them, and returned or revoked.

mod cb_getattr;
mod children;
mod directory;
mod giving_back;
mod grant;
mod notices;
mod programs;
mod recall;
mod recall_any;
mod worth;

pub use cb_getattr::DelegatedAttributes;
pub(crate) use children::is_watcher;
pub use directory::{DirectoryRequest, NoDirectory};
pub use grant::{Delegation, DelegationWish, NoDelegation};
pub(crate) use grant::{DelegationClaim, DelegationRequest};
pub use notices::Notified;
