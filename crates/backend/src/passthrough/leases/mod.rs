//! Leases, marks and range locks in the kernel, held against programs of this machine.

pub(crate) mod directory_hold;
pub(crate) mod fanotify_marks;
pub(crate) mod lease;
pub(crate) mod range_locks;
#[cfg(test)]
pub(crate) mod test_support;
