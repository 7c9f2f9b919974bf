use std::collections::VecDeque;
use std::sync::Arc;

use crate::directories::{Child, DirectoryNotice, DirectoryPolicy, NoticeBatch, NoticeWishes};

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
    /// Number of notifications in the call that is under way, without those of children.
    under_way: usize,
    /// True if a call is under way.
    is_calling: bool,
    /// The policy that judges whether the notifications are worth their calls.
    policy: Option<&'static dyn DirectoryPolicy>,
    /// True if they are not: the next change recalls the delegation.
    given_up: bool,
}

impl Notices {
    pub(crate) const fn new(wishes: NoticeWishes) -> Self {
        Self {
            wishes,
            waiting: VecDeque::new(),
            queued: 0,
            acknowledged: 0,
            under_way: 0,
            is_calling: false,
            policy: None,
            given_up: false,
        }
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

    /// Returns the number of the last notification, unless the client has acknowledged it.
    pub(crate) fn last_unacknowledged(&self) -> Option<u64> {
        (!self.is_acknowledged(self.queued)).then_some(self.queued)
    }

    /// Returns whether the client has acknowledged all notifications.
    pub(crate) const fn are_acknowledged(&self) -> bool {
        self.acknowledged == self.queued && !self.is_calling
    }

    /// Takes the notifications of the next call, if none is under way. After changes of the
    /// directory come those of `children`, which takes names as long as there is room.
    pub(crate) fn take(
        &mut self,
        children: impl FnOnce(&mut dyn FnMut(&[u8]) -> bool) -> Vec<Child>,
    ) -> Option<NoticeBatch> {
        if self.is_calling {
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
        if self.waiting.is_empty() {
            let (mut is_first, bytes_max) = (batch.is_empty(), self.wishes.bytes_max);
            let mut has_room = |name: &[u8]| {
                bytes += DirectoryNotice::bytes_of_child(name);
                std::mem::take(&mut is_first) || bytes <= bytes_max
            };
            batch.extend(children(&mut has_room).into_iter().map(DirectoryNotice::of_child));
        }
        self.is_calling = !batch.is_empty();
        self.is_calling.then(|| batch.into())
    }

    /// Notes that the client has acknowledged the call that is under way.
    pub(crate) fn acknowledge(&mut self) {
        self.acknowledged += std::mem::take(&mut self.under_way) as u64;
        self.is_calling = false;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comity_vfs::Handle;

    use super::*;
    use crate::directories::NotedChange;
    use crate::{FileKey, Share};

    fn notices(bytes_max: usize) -> Notices {
        Notices::new(NoticeWishes {
            kinds: Share::ADDED | Share::REMOVED | Share::RENAMED,
            handles: true,
            fileids: true,
            types: true,
            directory: 0,
            children: 0,
            child_delay: Duration::ZERO,
            bytes_max,
            unacknowledged_max: 5,
        })
    }

    fn none(_: &mut dyn FnMut(&[u8]) -> bool) -> Vec<Child> {
        Vec::new()
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
                assert_eq!(notices.take(none).map(|batch| batch.len()), (at == 0).then_some(1));
                number
            })
            .collect();
        assert_eq!(numbers, [1, 2, 3, 4]);
        notices.acknowledge();
        assert!(notices.is_acknowledged(1) && !notices.is_acknowledged(2));
        assert_eq!(notices.take(none).map(|batch| batch.len()), Some(3));
        notices.acknowledge();
        assert!(notices.are_acknowledged() && notices.take(none).is_none());
    }

    #[test]
    fn a_call_has_no_more_bytes_than_the_client_takes_but_one_notification_at_least() {
        for (bytes_max, calls) in [(0, 6), (2 * notice().bytes(), 3), (1 << 16, 1)] {
            let mut notices = notices(bytes_max);
            for _ in 0..6 {
                notices.push(notice());
            }
            let mut taken = 0;
            while notices.take(none).is_some() {
                notices.acknowledge();
                taken += 1;
            }
            assert_eq!(taken, calls, "{bytes_max}");
        }
    }

    #[test]
    fn changed_children_follow_the_changes_of_names_as_long_as_there_is_room() {
        let handle = Handle::new(b"child").unwrap();
        let key = FileKey { volume: 1, export: 1, handle };
        let bytes = DirectoryNotice::bytes_of_child(b"name");
        for (waiting, room, taken) in [(0, 0, 1), (0, 2, 2), (1, 2, 2), (1, 9, 4), (3, 2, 2)] {
            let mut notices = notices(room * bytes);
            for _ in 0..waiting {
                notices.push(notice());
            }
            let children = |has_room: &mut dyn FnMut(&[u8]) -> bool| {
                let child: Child = (b"name"[..].into(), key);
                (0..3).map_while(|_| has_room(b"name").then(|| child.clone())).collect()
            };
            let batch = notices.take(children).unwrap();
            assert_eq!(batch.len(), taken, "{waiting} {room}");
            assert!(!notices.are_acknowledged() && notices.take(children).is_none());
            notices.acknowledge();
            assert_eq!(notices.are_acknowledged(), waiting < 3);
        }
    }

    #[test]
    fn a_client_that_answers_nothing_has_no_room_left() {
        let mut notices = notices(1 << 16);
        for _ in 0..5 {
            assert!(notices.has_room());
            notices.push(notice());
            let _ = notices.take(none);
        }
        assert!(!notices.has_room());
    }
}
