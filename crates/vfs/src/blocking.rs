/// Runs what it is given, on the same thread and exactly once, knowing that it may sleep long.
pub type BlockingHook = fn(&mut dyn FnMut());

/// Calls `work` through a hook and returns what it returns.
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
