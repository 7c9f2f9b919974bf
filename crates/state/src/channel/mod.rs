//! The channels of a session as plain data: attributes, connections, slots and their replies.

mod attrs;
mod connections;
mod creation;
mod exported;
mod request;
mod slots;

pub use attrs::{BackChannel, CallbackSecurity, ChannelAttrs};
pub(crate) use connections::Connections;
pub use connections::Direction;
pub use creation::CreatedSession;
pub(crate) use creation::Creation;
pub use exported::{ExportedReply, ExportedSession, ExportedSlot};
pub use request::{Sequence, SequenceAnswer, StatusFlags};
pub(crate) use slots::{SlotAnswer, Slots};
