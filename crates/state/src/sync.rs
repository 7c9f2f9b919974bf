//! What threads meet in: the standard library's, or where schedules are explored that of `shuttle`,
//! which chooses who goes on at each of them.

#[cfg(feature = "schedules")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, atomic};
pub(crate) use std::sync::PoisonError;
#[cfg(not(feature = "schedules"))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, atomic};
