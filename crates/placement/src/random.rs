use comity_vfs::{Result, Status};
use rustix::rand::{GetRandomFlags, getrandom};

/// Returns random bytes of the system.
///
/// # Errors
/// [`Status::ServerFault`]: the system has none.
pub(crate) fn random<const COUNT: usize>() -> Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(count) if count == COUNT => Ok(bytes),
        _ => Err(Status::ServerFault),
    }
}
