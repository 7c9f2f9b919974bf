use std::sync::OnceLock;

pub use comity_vfs::BlockingHook;
use comity_vfs::run_through;

static HOOK: OnceLock<BlockingHook> = OnceLock::new();

/// Installs the process's hook for calls that may sleep long (barriers, reads that miss the page
/// cache, truncation of huge files), so that a server can let another worker take over meanwhile.
/// Without a hook they are called directly. Later hooks are ignored; returns whether this one was
/// installed.
pub fn install_blocking_hook(hook: BlockingHook) -> bool {
    HOOK.set(hook).is_ok()
}

/// Returns whether a hook is installed: only then is it checked whether a call would sleep.
pub(crate) fn is_hooked() -> bool {
    HOOK.get().is_some()
}

/// Calls `work`, which may sleep long, through the hook if there is one.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    match HOOK.get() {
        Some(hook) => run_through(*hook, work),
        None => work(),
    }
}

/// Counts the calls that went through the hook, for tests.
#[cfg(test)]
pub(crate) mod watch {
    use std::collections::HashMap;
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::thread::ThreadId;

    static SLEEPS: Mutex<Option<HashMap<ThreadId, usize>>> = Mutex::new(None);

    /// Starts counting.
    pub(crate) fn install() {
        super::install_blocking_hook(|work| {
            *sleeps().get_or_insert_default().entry(std::thread::current().id()).or_default() += 1;
            work();
        });
    }

    /// Returns the number of blocking calls of a thread.
    pub(crate) fn sleeps_of(thread: ThreadId) -> usize {
        sleeps().as_ref().and_then(|sleeps| sleeps.get(&thread).copied()).unwrap_or_default()
    }

    fn sleeps() -> MutexGuard<'static, Option<HashMap<ThreadId, usize>>> {
        SLEEPS.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
