use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::link::{CallBytes, Link, LinkAction, LinkPlace};
use crate::rpc::{RecordKind, kind, set_xid};

/// The content of a record that came over a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// The reply to the call of this owner.
    Reply(u64),
    /// A call by the server (backchannel).
    Call,
    /// A reply whose call is not known, or a record of an earlier connection.
    Stray,
    /// Neither a call nor a reply: the connection must be closed.
    Nonsense,
}

/// A call to send.
#[derive(Debug)]
pub(crate) struct Sending {
    /// The number by which its owner identifies it.
    pub(crate) owner: u64,
    /// Its record; `send` fills in the xid.
    pub(crate) record: CallBytes,
    /// The connection that must carry it, if it is about that connection. It is lost with it.
    pub(crate) only_over: Option<LinkPlace>,
}

/// The calls in flight.
#[derive(Debug)]
pub(crate) struct OutstandingCalls {
    links: Vec<Link>,
    /// The calls by xid.
    outstanding: HashMap<u32, Outstanding>,
    /// The xids of calls that wait for a connection, in the order in which they were made.
    unsent: BTreeMap<u64, u32>,
    next_xid: u32,
    serial: u64,
    silence_max: Duration,
    actions: VecDeque<LinkAction>,
}

#[derive(Debug)]
struct Outstanding {
    sending: Sending,
    serial: u64,
    /// The connection over which it was sent.
    over: Option<LinkPlace>,
}

impl OutstandingCalls {
    /// Makes a table for this number of connections. A connection is closed if calls have waited on
    /// it for `silence_max` without a record from the server. The first xid should differ from
    /// those of earlier runs.
    pub(crate) fn new(links: usize, silence_max: Duration, first_xid: u32) -> Self {
        Self {
            links: (0..links).map(Link::new).collect(),
            outstanding: HashMap::new(),
            unsent: BTreeMap::new(),
            next_xid: first_xid,
            serial: 0,
            silence_max,
            actions: VecDeque::new(),
        }
    }

    /// Sends a call now, or as soon as a connection is up.
    pub(crate) fn send(&mut self, now: Duration, mut sending: Sending) {
        let xid = self.new_xid();
        set_xid(Arc::make_mut(&mut sending.record).as_mut_slice(), xid);
        self.serial += 1;
        let call = Outstanding { sending, serial: self.serial, over: None };
        self.unsent.insert(call.serial, xid);
        self.outstanding.insert(xid, call);
        self.send_all(now);
    }

    /// Forgets the call of an owner: its reply will count as stray.
    pub(crate) fn forget(&mut self, owner: u64) {
        let is_it = |(_, call): &(&u32, &Outstanding)| call.sending.owner == owner;
        let Some(xid) = self.outstanding.iter().find(is_it).map(|(xid, _)| *xid) else { return };
        self.remove(xid);
    }

    /// Notes that a connection was made. Returns false if it is not the current generation.
    pub(crate) fn handle_up(&mut self, now: Duration, place: LinkPlace) -> bool {
        let Some(link) = self.current(place) else { return false };
        link.connected();
        self.send_all(now);
        true
    }

    /// Notes that a connection has ended or could not be made. Returns the owners of the calls that
    /// could use only this connection; all other calls are sent again.
    pub(crate) fn handle_down(&mut self, now: Duration, place: LinkPlace) -> Vec<u64> {
        let Some(link) = self.current(place) else { return Vec::new() };
        link.ended(now);
        let lost = self.take_back(place);
        self.send_all(now);
        lost
    }

    /// Classifies a record that was received. The owner of the call must still judge the reply.
    pub(crate) fn handle_record(&mut self, now: Duration, place: LinkPlace, bytes: &[u8]) -> Heard {
        let Some(link) = self.current(place) else { return Heard::Stray };
        link.heard(now);
        match kind(bytes) {
            Ok(RecordKind::Call) => Heard::Call,
            Ok(RecordKind::Reply(xid)) => self.remove(xid).map_or(Heard::Stray, Heard::Reply),
            Err(_) => Heard::Nonsense,
        }
    }

    /// Closes connections that have been silent for too long; returns the owners of their lost
    /// calls.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Vec<u64> {
        let silent = self.links.iter().filter(|link| link.is_silent(now, self.silence_max));
        let silent: Vec<LinkPlace> = silent.map(Link::place).collect();
        silent.into_iter().flat_map(|place| self.give_up(now, place)).collect()
    }

    /// Closes a connection; returns the owners of its lost calls.
    pub(crate) fn give_up(&mut self, now: Duration, place: LinkPlace) -> Vec<u64> {
        self.actions.push_back(LinkAction::Disconnect(place));
        self.handle_down(now, place)
    }

    /// Sends the reply to a call by the server, over the connection that carried the call.
    pub(crate) fn answer(&mut self, place: LinkPlace, record: Vec<u8>) {
        self.actions.push_back(LinkAction::Send(place, Arc::new(record)));
    }

    /// Returns the next action for the shell.
    pub(crate) fn poll_action(&mut self, now: Duration) -> Option<LinkAction> {
        let due = self.links.iter_mut().find_map(|link| link.poll(now));
        due.or_else(|| self.actions.pop_front())
    }

    /// The next time at which [`Self::handle_timeout`] or [`Self::poll_action`] must be called.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        self.links.iter().filter_map(|link| link.deadline(self.silence_max)).min()
    }

    /// The first connection that is up.
    pub(crate) fn any_up(&self) -> Option<LinkPlace> {
        self.links.iter().find(|link| link.is_up()).map(Link::place)
    }

    fn current(&mut self, place: LinkPlace) -> Option<&mut Link> {
        self.links.get_mut(place.link).filter(|link| link.place() == place)
    }

    fn new_xid(&mut self) -> u32 {
        loop {
            self.next_xid = self.next_xid.wrapping_add(1);
            if !self.outstanding.contains_key(&self.next_xid) {
                return self.next_xid;
            }
        }
    }

    /// Sends the waiting calls for which a connection is up.
    fn send_all(&mut self, now: Duration) {
        let waiting: Vec<u32> = self.unsent.values().copied().collect();
        for xid in waiting {
            if let Some(place) = self.choose(xid) {
                self.send_over(now, xid, place);
            }
        }
    }

    /// Chooses the connection for a call: its `only_over`, or the one with the fewest calls.
    fn choose(&self, xid: u32) -> Option<LinkPlace> {
        let only = self.outstanding.get(&xid)?.sending.only_over;
        let fits = |link: &&Link| link.is_up() && only.is_none_or(|only| only == link.place());
        self.links.iter().filter(fits).min_by_key(|link| link.unanswered).map(Link::place)
    }

    fn send_over(&mut self, now: Duration, xid: u32, place: LinkPlace) {
        let Some(call) = self.outstanding.get_mut(&xid) else { return };
        call.over = Some(place);
        self.unsent.remove(&call.serial);
        let record = Arc::clone(&call.sending.record);
        self.actions.push_back(LinkAction::Send(place, record));
        if let Some(link) = self.links.get_mut(place.link) {
            link.sent(now);
        }
    }

    /// Returns the calls of an ended connection to the queue of unsent calls. Removes those that no
    /// other connection may carry, and returns their owners.
    fn take_back(&mut self, place: LinkPlace) -> Vec<u64> {
        let of_link =
            |call: &Outstanding| call.over == Some(place) || call.sending.only_over == Some(place);
        let calls = self.outstanding.iter().filter(|(_, call)| of_link(call));
        let xids: Vec<u32> = calls.map(|(xid, _)| *xid).collect();
        let mut lost = Vec::new();
        for xid in xids {
            let Some(call) = self.outstanding.get_mut(&xid) else { continue };
            call.over = None;
            if call.sending.only_over.is_some() {
                lost.extend(self.remove(xid));
            } else {
                self.unsent.insert(call.serial, xid);
            }
        }
        lost
    }

    /// Removes a call; returns its owner.
    fn remove(&mut self, xid: u32) -> Option<u64> {
        let call = self.outstanding.remove(&xid)?;
        self.unsent.remove(&call.serial);
        if let Some(link) = call.over.and_then(|place| self.current(place)) {
            link.settled();
        }
        Some(call.sending.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SILENCE: Duration = Duration::from_secs(60);
    const NOW: Duration = Duration::from_secs(1);

    fn calls(links: usize) -> OutstandingCalls {
        OutstandingCalls::new(links, SILENCE, 100)
    }

    /// Makes the connections that are asked for; returns their places.
    fn connect(calls: &mut OutstandingCalls, now: Duration) -> Vec<LinkPlace> {
        let mut places = Vec::new();
        while let Some(LinkAction::Connect(place)) = calls.poll_action(now) {
            places.push(place);
        }
        places.iter().for_each(|place| assert!(calls.handle_up(now, *place)));
        places
    }

    fn send(calls: &mut OutstandingCalls, owner: u64, only_over: Option<LinkPlace>) {
        let record = Arc::new(vec![0; 12]);
        calls.send(NOW, Sending { owner, record, only_over });
    }

    /// The connections and xids of the calls that are sent now.
    fn sent(calls: &mut OutstandingCalls) -> Vec<(usize, u32)> {
        let mut sent = Vec::new();
        while let Some(action) = calls.poll_action(NOW) {
            if let LinkAction::Send(place, record) = action {
                sent.push((place.link, u32::from_be_bytes(*record[4..8].first_chunk().unwrap())));
            }
        }
        sent
    }

    fn reply(xid: u32) -> Vec<u8> {
        [xid, 1].iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn replies_find_their_calls_in_any_order_and_once() {
        let mut calls = calls(1);
        let places = connect(&mut calls, NOW);
        (1..=3).for_each(|owner| send(&mut calls, owner, None));
        assert_eq!(sent(&mut calls), [(0, 101), (0, 102), (0, 103)]);
        for (xid, owner) in [(103, 3), (101, 1), (102, 2)] {
            let heard = calls.handle_record(NOW, places[0], &reply(xid));
            assert_eq!(heard, Heard::Reply(owner));
            assert_eq!(calls.handle_record(NOW, places[0], &reply(xid)), Heard::Stray);
        }
        assert_eq!(calls.handle_record(NOW, places[0], &[0; 8]), Heard::Call);
        assert_eq!(calls.handle_record(NOW, places[0], &[0; 7]), Heard::Nonsense);
    }

    #[test]
    fn calls_are_spread_over_connections() {
        let mut calls = calls(2);
        connect(&mut calls, NOW);
        (1..=4).for_each(|owner| send(&mut calls, owner, None));
        let links: Vec<usize> = sent(&mut calls).into_iter().map(|(link, _)| link).collect();
        assert_eq!(links, [0, 1, 0, 1]);
    }

    #[test]
    fn calls_of_a_lost_connection_go_out_again_in_order_under_the_same_xid() {
        let mut calls = calls(2);
        let places = connect(&mut calls, NOW);
        (1..=4).for_each(|owner| send(&mut calls, owner, None));
        sent(&mut calls);
        assert!(calls.handle_down(NOW, places[0]).is_empty());
        assert_eq!(sent(&mut calls), [(1, 101), (1, 103)]);
        // A late reply over the old connection is ignored.
        assert_eq!(calls.handle_record(NOW, places[0], &reply(101)), Heard::Stray);
        assert_eq!(calls.handle_record(NOW, places[1], &reply(101)), Heard::Reply(1));
    }

    #[test]
    fn without_a_connection_calls_wait() {
        let mut calls = calls(1);
        send(&mut calls, 1, None);
        send(&mut calls, 2, None);
        calls.forget(1);
        connect(&mut calls, NOW);
        assert_eq!(sent(&mut calls), [(0, 102)]);
    }

    #[test]
    fn a_call_about_a_connection_ends_with_it() {
        let mut calls = calls(2);
        let places = connect(&mut calls, NOW);
        send(&mut calls, 7, Some(places[1]));
        assert_eq!(sent(&mut calls), [(1, 101)]);
        assert_eq!(calls.handle_down(NOW, places[1]), [7]);
        assert_eq!(sent(&mut calls), []);
    }

    #[test]
    fn a_silent_connection_is_ended_and_its_calls_go_out_over_the_next() {
        let mut calls = calls(1);
        let places = connect(&mut calls, NOW);
        send(&mut calls, 1, None);
        sent(&mut calls);
        let late = NOW + SILENCE;
        assert_eq!(calls.poll_timeout(), Some(late));
        assert!(calls.handle_timeout(late).is_empty());
        let Some(LinkAction::Connect(again)) = calls.poll_action(late) else { panic!("no other") };
        assert!(calls.handle_up(late, again));
        assert!(!calls.handle_up(late, places[0]), "an earlier generation is ignored");
        let disconnected = LinkAction::Disconnect(places[0]);
        let actions: Vec<_> = std::iter::from_fn(|| calls.poll_action(late)).collect();
        assert!(
            actions.iter().any(|action| matches!(action, LinkAction::Send(to, _) if *to == again))
        );
        assert!(actions.contains(&disconnected) || actions.len() == 1);
    }
}
