//! Replies of the lock manager that are sent as calls to the requesting host (NLM4_LOCK_RES and
//! similar).

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_nfs3::Message;
use comity_proto::nlm::{PROGRAM, VERSION};
use comity_server::{OneWayTarget, RemoteCall};
use comity_state::Origin;

use crate::host_queue::HostQueue;
use crate::limits::{MAILBOX_SECONDS, MAILBOXES_MAX, MESSAGES_MAX};
use crate::origin_shares::OriginShares;

/// For each host: the address of its lock manager, if it has one, and when it was looked up.
type Mailboxes = Mutex<HashMap<IpAddr, (Instant, Option<OneWayTarget>)>>;

/// Starts the threads that send replies; they end when all senders are dropped.
pub(crate) fn start() -> SyncSender<Message> {
    let mailboxes = Mailboxes::default();
    start_with(move |message| {
        if let Err(error) = carry(message, &mailboxes) {
            tracing::info!(host = %message.host, %error, "an asynchronous lock reply was not sent");
        }
    })
}

/// Like [`start`]; `carry` sends one reply. A host that cannot be reached blocks a thread for some
/// seconds, once in [`MAILBOX_SECONDS`].
fn start_with(carry: impl Fn(&Message) + Send + Sync + 'static) -> SyncSender<Message> {
    let (sender, receiver) = mpsc::sync_channel::<Message>(MESSAGES_MAX);
    let (queue, carry) = (HostQueue::default(), Arc::new(carry));
    let places = Arc::new(OriginShares::at_most(MESSAGES_MAX));
    let distribute = move || {
        for message in receiver {
            let Some(waiting) = WaitingReply::of(&places, message.host) else {
                tracing::info!(host = %message.host, "too many asynchronous lock replies wait");
                continue;
            };
            let carry = Arc::clone(&carry);
            queue.run(message.host, move || {
                carry(&message);
                drop(waiting);
            });
        }
    };
    if let Err(error) = thread::Builder::new().name("nlm-replies".into()).spawn(distribute) {
        tracing::warn!(%error, "asynchronous lock requests are not answered: no thread");
    }
    sender
}

/// A reply that takes a place of its host's origin until it is dropped.
struct WaitingReply(Arc<OriginShares>, Origin);

impl WaitingReply {
    /// A reply to this host, if there may be one more.
    fn of(places: &Arc<OriginShares>, host: IpAddr) -> Option<Self> {
        let origin = Origin::of(host).network();
        places.enter(origin, false).then(|| Self(Arc::clone(places), origin))
    }
}

impl Drop for WaitingReply {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

/// Sends a reply without waiting for an answer: a host that does not receive it asks again.
fn carry(message: &Message, mailboxes: &Mailboxes) -> io::Result<()> {
    let Message { host, source, procedure, ref arguments } = *message;
    let call = RemoteCall { program: PROGRAM, version: VERSION, procedure, arguments, source };
    let mailbox = match known(mailboxes, host) {
        Some(mailbox) => mailbox,
        None => {
            let found = call.find_one_way_target(host);
            keep(mailboxes, host, found.as_ref().ok().copied());
            Some(found?)
        }
    };
    // The host had no lock manager when it was last looked up, which was logged.
    let Some(mailbox) = mailbox else { return Ok(()) };
    call.send(mailbox).inspect_err(|_| keep(mailboxes, host, None))
}

fn known(mailboxes: &Mailboxes, host: IpAddr) -> Option<Option<OneWayTarget>> {
    let mailboxes = mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
    let (since, mailbox) = mailboxes.get(&host)?;
    (since.elapsed() < Duration::from_secs(MAILBOX_SECONDS)).then_some(*mailbox)
}

fn keep(mailboxes: &Mailboxes, host: IpAddr, mailbox: Option<OneWayTarget>) {
    let mut mailboxes = mailboxes.lock().unwrap_or_else(PoisonError::into_inner);
    if mailboxes.len() >= MAILBOXES_MAX {
        mailboxes.clear();
    }
    mailboxes.insert(host, (Instant::now(), mailbox));
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv6Addr, UdpSocket};

    use super::*;

    /// Sends replies to silent hosts, for which a thread waits until the end of the test, and then
    /// one to another host. Returns the number of those to silent hosts that are sent at the end.
    fn sent_to_silent(silent: impl Iterator<Item = IpAddr>) -> usize {
        let good = IpAddr::from([192, 0, 2, 99]);
        let ((told, sent), (open, gate)) = (mpsc::channel(), mpsc::channel::<()>());
        let (gate, told) = (Mutex::new(gate), Mutex::new(told));
        let sender = start_with(move |message| {
            if message.host != good {
                let _ = gate.lock().unwrap().recv();
            }
            let _ = told.lock().unwrap().send(message.host);
        });
        let message = |host| Message { host, source: None, procedure: 12, arguments: Vec::new() };
        silent.chain([good]).for_each(|host| sender.send(message(host)).unwrap());
        assert_eq!(sent.recv_timeout(Duration::from_secs(10)), Ok(good));
        drop((open, sender));
        sent.iter().count()
    }

    #[test]
    fn hosts_that_cannot_be_reached_delay_no_replies_to_others() {
        let network = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).into();
        assert_eq!(sent_to_silent((0..100).map(network)), 100);
    }

    #[test]
    fn a_network_has_as_many_replies_waiting_as_it_leaves_for_others() {
        let host = IpAddr::from([192, 0, 2, 1]);
        let sent = sent_to_silent(std::iter::repeat_n(host, 2 * MESSAGES_MAX));
        assert_eq!(sent, MESSAGES_MAX / 2);
    }

    #[test]
    fn a_known_address_gets_the_reply_from_the_address_that_was_asked() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let host = "127.0.0.1".parse().unwrap();
        let mailboxes = Mailboxes::default();
        keep(&mailboxes, host, Some(OneWayTarget::Udp(socket.local_addr().unwrap())));
        let source = Some("127.0.0.2".parse().unwrap());
        let message = Message { host, source, procedure: 12, arguments: b"args".to_vec() };
        carry(&message, &mailboxes).unwrap();
        let mut told = [0; 100];
        let (length, from) = socket.recv_from(&mut told).unwrap();
        assert_eq!(Some(from.ip()), source);
        // The procedure follows xid, message type, RPC version, program and version.
        assert_eq!((&told[20..24], told[..length].ends_with(b"args")), (&[0, 0, 0, 12][..], true));
    }

    #[test]
    fn a_host_without_a_lock_manager_is_skipped_for_a_while() {
        let host = "127.0.0.1".parse().unwrap();
        let mailboxes = Mailboxes::default();
        keep(&mailboxes, host, None);
        let message = Message { host, source: None, procedure: 12, arguments: Vec::new() };
        carry(&message, &mailboxes).expect("nothing is sent");
        assert_eq!(known(&mailboxes, host), Some(None));
    }

    #[test]
    fn the_number_of_cached_addresses_is_bounded() {
        let mailboxes = Mailboxes::default();
        for number in 0..=MAILBOXES_MAX as u32 {
            keep(&mailboxes, IpAddr::from(number.to_be_bytes()), None);
        }
        assert!(mailboxes.lock().unwrap().len() <= MAILBOXES_MAX);
    }
}
