use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::suite::Interrupt;

/// Signals within this time count as one: `timeout` and some shells send a signal to the program
/// and once more to its group.
const TOGETHER: Duration = Duration::from_secs(1);

/// The first signal asks the run to end in order; one that comes later ends it at once.
///
/// # Errors
/// No thread can be started.
pub(super) fn obey(interrupt: &Interrupt) -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let interrupt = interrupt.clone();
    let wait = move || {
        let mut first = None;
        for signal in &mut signals {
            if first.get_or_insert_with(Instant::now).elapsed() > TOGETHER {
                let _ = emulate_default_handler(signal);
            }
            interrupt.set();
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait)?;
    Ok(())
}
