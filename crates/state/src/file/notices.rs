use std::collections::VecDeque;
use std::sync::Arc;

use crate::directories::{DirectoryNotice, DirectoryPolicy, NoticeBatch, NoticeWishes};

/// The notifications of one directory delegation. One CB_NOTIFY is under way at a time, so that a
/// client gets them in the order of the changes; those that come meanwhile wait, and go together.
#[derive(Debug)]
pub(crate) struct Notices {
    wishes: NoticeWishes,
    waiting: VecDeque<Arc<DirectoryNotice>>,
    /// Number of notifications that were queued.
    queued: u64,
    /// Number of notifications that the client has acknowledged.
    acknowledged: u64,
    /// Number of notifications in the call that is under way.
    under_way: usize,
    /// The policy that judges whether the notifications are worth their calls.
    policy: Option<&'static dyn DirectoryPolicy>,
    /// True if they are not: the next change recalls the delegation.
    given_up: bool,
}

impl Notices {
    pub(crate) const fn new(wishes: NoticeWishes) -> Self {
        let waiting = VecDeque::new();
        let (queued, acknowledged, under_way) = (0, 0, 0);
        Self { wishes, waiting, queued, acknowledged, under_way, policy: None, given_up: false }
    }

    /// The same, judged by a policy.
    pub(crate) fn judged_by(self, policy: &'static dyn DirectoryPolicy) -> Self {
        Self { policy: Some(policy), ..self }
    }

    /// Returns the policy that judges them.
    pub(crate) const fn policy(&self) -> Option<&'static dyn DirectoryPolicy> {
        self.policy
    }

    /// Notes that they are not worth their calls. Those that are queued are still sent.
    pub(crate) const fn give_up(&mut self) {
        self.given_up = true;
    }

    pub(crate) const fn wishes(&self) -> NoticeWishes {
        self.wishes
    }

    /// Returns whether another change may be notified. Otherwise the client is too slow, or its
    /// delegation is not worth its calls.
    pub(crate) fn has_room(&self) -> bool {
        !self.given_up && self.waiting.len() + self.under_way < self.wishes.unacknowledged_max
    }

    /// Queues a notification; returns its number.
    pub(crate) fn push(&mut self, notice: Arc<DirectoryNotice>) -> u64 {
        self.waiting.push_back(notice);
        self.queued += 1;
        self.queued
    }

    /// Returns whether the client has acknowledged a notification.
    pub(crate) const fn is_acknowledged(&self, number: u64) -> bool {
        self.acknowledged >= number
    }

    /// Returns whether the client has acknowledged all notifications.
    pub(crate) const fn are_acknowledged(&self) -> bool {
        self.acknowledged == self.queued
    }

    /// Takes the notifications of the next call, if none is under way.
    pub(crate) fn take(&mut self) -> Option<NoticeBatch> {
        if self.under_way > 0 || self.waiting.is_empty() {
            return None;
        }
        let (mut bytes, mut batch) = (0, Vec::new());
        while let Some(next) = self.waiting.front() {
            bytes += next.bytes();
            if !batch.is_empty() && bytes > self.wishes.bytes_max {
                break;
            }
            batch.extend(self.waiting.pop_front());
        }
        self.under_way = batch.len();
        Some(batch.into())
    }

    /// Notes that the client has acknowledged the call that is under way.
    pub(crate) fn acknowledge(&mut self) {
        self.acknowledged += std::mem::take(&mut self.under_way) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directories::NotedChange;

    fn notices(bytes_max: usize) -> Notices {
        Notices::new(NoticeWishes {
            handles: true,
            fileids: true,
            types: true,
            directory: 0,
            bytes_max,
            unacknowledged_max: 5,
        })
    }

    fn notice() -> Arc<DirectoryNotice> {
        let change = NotedChange::Removed { name: b"name"[..].into() };
        Arc::new(DirectoryNotice { change, after: None })
    }

    #[test]
    fn changes_during_a_call_go_together_in_the_next_one() {
        let mut notices = notices(1 << 16);
        let numbers: Vec<u64> = (0..4)
            .map(|at| {
                let number = notices.push(notice());
                assert_eq!(notices.take().map(|batch| batch.len()), (at == 0).then_some(1));
                number
            })
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        notices.acknowledge();
        assert!(notices.is_acknowledged(1) && !notices.is_acknowledged(2));
        assert_eq!(notices.take().map(|batch| batch.len()), Some(3));
        notices.acknowledge();
        assert!(notices.are_acknowledged() && notices.take().is_none());
    }

    #[test]
    fn a_call_has_no_more_bytes_than_the_client_takes_but_one_notification_at_least() {
        for (bytes_max, calls) in [(0, 6), (2 * notice().bytes(), 3), (1 << 16, 1)] {
            let mut notices = notices(bytes_max);
            for _ in 0..6 {
                notices.push(notice());
            }
            let mut taken = 0;
            while notices.take().is_some() {
                notices.acknowledge();
                taken += 1;
            }
            assert_eq!(taken, calls, "{bytes_max}");
        }
    }

    #[test]
    fn a_client_that_answers_nothing_has_no_room_left() {
        let mut notices = notices(1 << 16);
        for _ in 0..5 {
            assert!(notices.has_room());
            notices.push(notice());
            let _ = notices.take();
        }
        assert!(!notices.has_room());
    }
}
