//! Rights that people grant to others by their keys.
//!
//! **Answers:** as which account a key acts, under whose ids a key may do an operation on an object
//! now, and why; which credentials a key holds, what was revoked, and which of this must be stored
//! ([`Medium`]).
//!
//! **May not know:** the wire, exports and their rules, sockets, where records are stored.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod accounts;
mod ancestry;
mod by_creation;
mod caller;
mod counters;
mod creation;
mod creations;
mod creator;
mod decision;
mod evaluate;
mod grants;
mod held;
mod held_set;
mod holder;
mod kept_decisions;
pub mod limits;
mod links;
mod memory;
mod moment;
mod object_id;
mod operation;
mod outcome;
mod places;
mod policy;
mod record;
mod revocations;
mod revoke;
mod root;
mod scene;
mod server_key;
mod storage;
mod submission;
mod ways;
mod why;

pub use accounts::{Account, Accounts, BadLine, Binding, NoIds};
pub use ancestry::{Ancestry, Glance, Tree, Within};
pub use caller::{ClientNames, KeyCaller};
pub use counters::GrantCounts;
pub use creation::Creation;
pub use creator::FetchError;
pub use grants::{Grants, KnownState, TellMoment};
pub use held::Held;
pub use held_set::Full;
pub use holder::Holder;
pub use memory::ListedCredential;
pub use moment::{Moment, NoMoment, RightsClock};
pub use object_id::{NoObjectId, ObjectId};
pub use operation::Operation;
pub use outcome::Outcome;
pub use policy::{Policy, PolicyError};
pub use record::{Medium, MediumError, Record, Recovered, Unstored};
pub use revocations::{NoRoom, RememberedRevocation, Revocations, Revoked, Revoker};
pub use revoke::{Revocation, RevokeError};
pub use scene::Scene;
pub use server_key::ServerKey;
pub use submission::{SubmitError, Submitted};
