//! Operations on delegations: granted by policy, recalled when others come, returned or revoked.

mod cb_getattr;
mod giving_back;
mod grant;
mod programs;
mod recall;
mod recall_any;

pub use cb_getattr::DelegatedAttributes;
pub use grant::{Delegation, DelegationWish, NoDelegation};
pub(crate) use grant::{DelegationClaim, DelegationRequest};
