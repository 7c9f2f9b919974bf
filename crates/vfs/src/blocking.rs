/// Runs a function on the same thread exactly once, and allows it to sleep for a long time.
pub type BlockingHook = fn(&mut dyn FnMut());

/// Runs `work` through a hook; returns its result.
pub fn run_through<T>(hook: BlockingHook, work: impl FnOnce() -> T) -> T {
    let mut work = Some(work);
    let mut outcome = None;
    hook(&mut || {
        if let Some(work) = work.take() {
            outcome = Some(work());
        }
    });
    match (outcome, work) {
        (Some(outcome), _) => outcome,
        (None, Some(work)) => work(),
        (None, None) => unreachable!("the work was taken, so there is an outcome"),
    }
}
