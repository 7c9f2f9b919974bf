//! Replies of the lock manager that are sent as calls to the requesting host (NLM4_LOCK_RES and
//! similar).

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_nfs3::Message;
use comity_proto::nlm::{PROGRAM, VERSION};
use comity_server::{OneWayTarget, RemoteCall};

use crate::limits::{MAILBOX_SECONDS, MAILBOXES_MAX, MESSAGES_MAX, NLM_REPLY_THREADS};

/// For each host: the address of its lock manager, if it has one, and when it was looked up.
type Mailboxes = Mutex<HashMap<IpAddr, (Instant, Option<OneWayTarget>)>>;

/// Starts the threads that send replies; they end when all senders are dropped.
pub(crate) fn start() -> SyncSender<Message> {
    let (sender, receiver) = mpsc::sync_channel(MESSAGES_MAX);
    let shared = Arc::new((Mutex::new(receiver), Mailboxes::default()));
    for _ in 0..NLM_REPLY_THREADS {
        let shared = Arc::clone(&shared);
        let carry = move || carry_all(&shared.0, &shared.1);
        if let Err(error) = thread::Builder::new().name("nlm-replies".into()).spawn(carry) {
            tracing::warn!(%error, "replies to asynchronous lock requests are late: no thread");
        }
    }
    sender
}

fn carry_all(messages: &Mutex<Receiver<Message>>, mailboxes: &Mailboxes) {
    let next = || messages.lock().unwrap_or_else(PoisonError::into_inner).recv();
    while let Ok(message) = next() {
        if let Err(error) = carry(&message, mailboxes) {
            tracing::info!(host = %message.host, %error, "an asynchronous lock reply was not sent");
        }
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
    use std::net::UdpSocket;

    use super::*;

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
