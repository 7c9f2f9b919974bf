//! Layouts: LAYOUTGET, LAYOUTRETURN, LAYOUTCOMMIT, and the last CLOSE (RFC 8881, 12.5).
//!
//! A client has at most one layout of a file, with any number of ranges. Layouts of different
//! clients never conflict; they are recalled before the size of the file or the rights to it
//! change. A layout that ends without its client's doing is fenced. A layout ends with the last
//! open and delegation of the file that the client has (`logr_return_on_close`), so that no layout
//! outlives the right to the file. The size of a file is asked from its data servers when a layout
//! for writing ends without a LAYOUTCOMMIT.

mod fence;
mod get;
mod giving_back;
mod recall;
mod sizes;

pub use giving_back::LayoutScope;
