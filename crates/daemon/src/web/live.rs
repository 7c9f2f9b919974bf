//! The load each second, as server-sent events.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::response::Sse;
use axum::response::sse::Event;
use comity_server::control::{Answer, Request};
use futures_util::stream::{Stream, unfold};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Perform, WebState};

/// Time between two events, equal to that between two samples.
const TICK: Duration = Duration::from_secs(1);

/// The last load report, which all open pages share.
#[derive(Default)]
pub(super) struct Latest(Option<(Instant, Arc<str>)>);

pub(super) async fn stream(
    State(state): State<WebState>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Sse::new(unfold((state, ticks), next))
}

async fn next(
    (state, mut ticks): (WebState, Interval),
) -> Option<(Result<Event, Infallible>, (WebState, Interval))> {
    ticks.tick().await;
    let text = latest(&state.load, &state.perform);
    Some((Ok(Event::default().data(&*text)), (state, ticks)))
}

/// Returns the load report; one younger than half a second is reused.
fn latest(kept: &Mutex<Latest>, perform: &Perform) -> Arc<str> {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((made, text)) = &kept.0
        && made.elapsed() < TICK / 2
    {
        return Arc::clone(text);
    }
    let text: Arc<str> = match perform(Request::Load) {
        Answer::Done(value) => value.to_string().into(),
        Answer::Failed(_) => "null".into(),
    };
    kept.0 = Some((Instant::now(), Arc::clone(&text)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn pages_that_are_open_at_the_same_time_share_one_report() {
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        let perform: Perform = Arc::new(move |request| {
            assert_eq!(request, Request::Load);
            Answer::Done(count.fetch_add(1, Ordering::Relaxed).into())
        });
        let kept = Mutex::default();
        let texts: Vec<_> = (0..100).map(|_| latest(&kept, &perform)).collect();
        assert!(texts.iter().all(|text| **text == *"0"), "{texts:?}");
        std::thread::sleep(TICK / 2 + TICK / 10);
        assert_eq!(&*latest(&kept, &perform), "1");
    }
}
