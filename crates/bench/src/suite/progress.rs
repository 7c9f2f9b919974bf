use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::{ProgressBar, ProgressStyle};

/// Parts into which a round is divided for the bar.
const PARTS: u64 = 1000;

/// The progress that the user sees during a run: a bar with an estimate on a terminal, otherwise a
/// line for each step that is done. Both on standard error.
#[derive(Debug)]
pub struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    done: AtomicU64,
}

impl Progress {
    /// Shows the progress of this many rounds; `quiet` shows nothing.
    #[must_use]
    pub fn new(rounds: u64, quiet: bool) -> Self {
        let shown = !quiet && std::io::stderr().is_terminal();
        let bar = shown.then(|| ProgressBar::new(rounds * PARTS).with_style(style()));
        Self { bar, quiet, done: AtomicU64::new(0) }
    }

    /// Shows that a round begins.
    pub fn begin(&self, what: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(what.to_owned());
            bar.set_position(self.done() * PARTS);
        }
    }

    /// Shows the part of the round that is done, from 0 to 1.
    pub fn advance(&self, share: f64) {
        if let Some(bar) = &self.bar {
            let parts = (share.clamp(0.0, 1.0) * PARTS as f64) as u64;
            bar.set_position(self.done() * PARTS + parts);
        }
    }

    /// Ends a round; `line` is its result.
    pub fn end(&self, line: &str) {
        self.done.fetch_add(1, Ordering::Relaxed);
        self.say(line);
        if let Some(bar) = &self.bar {
            bar.set_position(self.done() * PARTS);
        }
    }

    /// Counts rounds that are left out.
    pub fn skip(&self, rounds: u64) {
        self.done.fetch_add(rounds, Ordering::Relaxed);
    }

    /// Shows another message.
    pub fn say(&self, line: &str) {
        match &self.bar {
            _ if self.quiet => {}
            Some(bar) => bar.println(line),
            None => eprintln!("{line}"),
        }
    }

    fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Ends the display.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    let template = "{bar:30} {percent:>3} %  {elapsed_precise}, {eta} left  {msg}";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
