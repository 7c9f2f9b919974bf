//! Operations on opens: OPEN, CLOSE, share reservations and the order of an owner's operations.

mod close;
mod deny;
mod in_use;
mod open;
mod owner_seqid;

pub use open::{Before, Claim, Open, Opened};
pub use owner_seqid::{OwnerAnswer, OwnerTurn, SeqidCheck};
