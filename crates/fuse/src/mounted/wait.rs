//! Retries of verbs that return DELAY.

use std::thread;
use std::time::Duration;

use comity_vfs::Status;
use rustix::io::{self, Errno};

use crate::errno::errno;
use crate::limits::{DELAY_FIRST, DELAY_MAX, INTERRUPT_PAUSE};
use crate::process::is_interrupted;

/// Performs `work` until it returns something other than DELAY, or a signal is pending for thread
/// `pid`.
///
/// # Errors
/// Those of the verb; [`Errno::INTR`] after a signal.
pub(super) fn patiently<T>(pid: u32, mut work: impl FnMut() -> Result<T, Status>) -> io::Result<T> {
    let mut pause = DELAY_FIRST;
    loop {
        match work() {
            Err(Status::Delay) => sleep(pid, pause)?,
            done => return done.map_err(errno),
        }
        pause = (pause * 2).min(DELAY_MAX);
    }
}

fn sleep(pid: u32, mut pause: Duration) -> io::Result<()> {
    while !pause.is_zero() {
        if is_interrupted(pid) {
            return Err(Errno::INTR);
        }
        let step = pause.min(INTERRUPT_PAUSE);
        thread::sleep(step);
        pause -= step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delayed_verb_is_tried_again() {
        let mut answers = vec![Ok(3), Err(Status::Delay), Err(Status::Delay)];
        assert_eq!(patiently(0, || answers.pop().unwrap()), Ok(3));
        assert_eq!(patiently::<()>(0, || Err(Status::NoEnt)), Err(Errno::NOENT));
    }

    #[test]
    fn a_verb_of_a_process_that_is_gone_is_given_up() {
        assert_eq!(patiently::<()>(u32::MAX, || Err(Status::Delay)), Err(Errno::INTR));
    }
}
