//! Locks and atomics of the standard library, or those of `shuttle` in tests of schedules, where it
//! chooses the next thread at each of them.

#[cfg(feature = "schedules")]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, atomic};
pub(crate) use std::sync::PoisonError;
#[cfg(not(feature = "schedules"))]
pub(crate) use std::sync::{Mutex, MutexGuard, RwLock, atomic};
