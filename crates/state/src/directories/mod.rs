//! Facts about the use of directories from which directory delegations follow: the requests and
//! recalls of the past, the policies that judge them, and the changes that are under way or wait.

mod changes;
mod history;
mod notice;
mod policy;
mod usage;
mod waiting;

pub(crate) use changes::Changes;
pub(crate) use history::DirectoryHistory;
pub(crate) use notice::Child;
pub use notice::{ChildAttributes, DirectoryNotice, NotedChange, NoticeBatch, NoticeWishes};
pub use policy::{Adaptive, Always, DirectoryPolicy, Never, SecondAsk};
pub(crate) use usage::CALLS_OF_A_RECALL;
pub use usage::DirectoryUse;
pub(crate) use waiting::WaitingChanges;
