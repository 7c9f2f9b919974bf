//! Records and the replay cache against simple models, under random streams and calls.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use comity_rpc::limits::{
    BACKCHANNEL_BYTES_MAX, REPLAY_ANSWER_BYTES_MAX, REPLAY_DIGEST_BYTES, REPLAY_SECONDS_MAX,
};
use comity_rpc::{
    Backchannel, RecordError, RecordLimits, ReplayCache, ReplayKey, Scan, SendError, Verdict,
    next_record,
};
use comity_xdr::Encoder;
use proptest::collection::vec;
use proptest::prelude::*;

const LIMITS: RecordLimits = RecordLimits { bytes_max: 4096 };
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A record as it is sent: its bytes, cut into fragments at these places.
#[derive(Debug, Clone)]
struct Sent {
    bytes: Vec<u8>,
    cuts: Vec<prop::sample::Index>,
}

impl Sent {
    fn fragments(&self) -> Vec<u8> {
        let mut ends: Vec<usize> =
            self.cuts.iter().map(|cut| cut.index(self.bytes.len() + 1)).collect();
        ends.push(self.bytes.len());
        ends.sort_unstable();
        let (mut stream, mut start) = (Vec::new(), 0);
        for (at, end) in ends.iter().enumerate() {
            let last = if at + 1 == ends.len() { 1 << 31 } else { 0 };
            stream.extend(((end - start) as u32 | last).to_be_bytes());
            stream.extend(&self.bytes[start..*end]);
            start = *end;
        }
        stream
    }
}

fn sent() -> impl Strategy<Value = Sent> {
    let (bytes, cuts) = (vec(any::<u8>(), 0..300), vec(any::<prop::sample::Index>(), 0..5));
    (bytes, cuts).prop_map(|(bytes, cuts)| Sent { bytes, cuts })
}

/// Takes all records out of a buffer, and returns how many bytes they used.
fn take_all(buffer: &mut [u8], taken: &mut Vec<Vec<u8>>) -> Result<usize, RecordError> {
    let mut used = 0;
    loop {
        match next_record(&mut buffer[used..], &LIMITS)? {
            Scan::Record { body, end } => {
                taken.push(buffer[used + body.start..used + body.end].to_vec());
                used += end;
            }
            Scan::Partial { bytes_needed } => {
                assert!(bytes_needed > buffer.len() - used, "more bytes were requested than exist");
                return Ok(used);
            }
        }
    }
}

proptest! {
    #[test]
    fn records_are_the_same_wherever_they_are_cut_into_fragments(
        records in vec(sent(), 0..8),
        pieces in vec(1_usize..200, 1..20),
    ) {
        let stream: Vec<u8> = records.iter().flat_map(Sent::fragments).collect();
        let (mut buffer, mut taken, mut at) = (Vec::new(), Vec::new(), 0);
        for piece in pieces.iter().cycle() {
            let end = (at + piece).min(stream.len());
            buffer.extend(&stream[at..end]);
            at = end;
            let used = take_all(&mut buffer, &mut taken).unwrap();
            buffer.drain(..used);
            if at == stream.len() {
                break;
            }
        }
        prop_assert!(buffer.is_empty());
        prop_assert_eq!(taken, records.into_iter().map(|sent| sent.bytes).collect::<Vec<_>>());
    }

    #[test]
    fn random_bytes_end_in_records_within_the_limit_or_in_an_error(
        mut stream in vec(any::<u8>(), 0..2000),
    ) {
        let mut taken = Vec::new();
        let _ = take_all(&mut stream, &mut taken);
        prop_assert!(taken.iter().all(|record| record.len() <= LIMITS.bytes_max));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_its_bytes_arrive(over in 1_u32..1_000_000) {
        let length = LIMITS.bytes_max as u32 + over;
        for last in [0, 1 << 31] {
            let mut header = (length | last).to_be_bytes();
            let refused = matches!(
                next_record(&mut header, &LIMITS),
                Err(RecordError::TooLong { bytes, limit })
                    if bytes == length as usize && limit == LIMITS.bytes_max
            );
            prop_assert!(refused);
        }
    }

    #[test]
    fn a_back_channel_returns_its_records_once_and_in_order(
        steps in vec(prop_oneof![vec(any::<u8>(), 1..100).prop_map(Some), Just(None)], 0..60),
    ) {
        let backchannel = Backchannel::new(|| {});
        let (mut waiting, mut encoder) = (Vec::new(), Encoder::new());
        for step in steps {
            match step {
                Some(record) => {
                    backchannel.send(&record).unwrap();
                    waiting.extend(record);
                    prop_assert!(backchannel.has_records());
                }
                None => {
                    encoder.clear(0);
                    backchannel.take_into(&mut encoder);
                    prop_assert_eq!(encoder.bytes(), &waiting[..]);
                    waiting.clear();
                    prop_assert!(!backchannel.has_records());
                }
            }
        }
    }

    #[test]
    fn the_replay_cache_agrees_with_a_map(
        steps in vec((0_u32..12, 0_u8..4, any::<bool>()), 0..200),
    ) {
        let cache = ReplayCache::default();
        let mut model: HashMap<(u32, u8), Vec<u8>> = HashMap::new();
        for (xid, argument, is_answered) in steps {
            let key = ReplayKey::new(PEER, xid, &[argument]);
            match (cache.begin(key), model.get(&(xid, argument))) {
                (Verdict::New(ticket), None) => {
                    if is_answered {
                        let answer = vec![argument; xid as usize + 1];
                        ticket.answered(&answer);
                        model.insert((xid, argument), answer);
                    }
                }
                (Verdict::Answered(answer), Some(known)) => prop_assert_eq!(&*answer, &known[..]),
                (_, known) => prop_assert!(false, "the model says {known:?}"),
            }
        }
    }
}

#[test]
fn calls_are_distinguished_by_their_first_kilobyte_and_their_length() {
    let cache = ReplayCache::default();
    let long = vec![0; 2 * REPLAY_DIGEST_BYTES];
    let is_new = |record: &[u8]| match cache.begin(ReplayKey::new(PEER, 1, record)) {
        Verdict::New(ticket) => {
            ticket.answered(b"answer");
            true
        }
        Verdict::Answered(_) | Verdict::InProgress => false,
    };
    assert!(is_new(&long));
    assert!(!is_new(&long));
    assert!(is_new(&long[1..]));
    let mut early = long.clone();
    early[REPLAY_DIGEST_BYTES - 1] = 1;
    assert!(is_new(&early));
    let mut late = long;
    late[REPLAY_DIGEST_BYTES] = 1;
    assert!(!is_new(&late), "bytes after the first kilobyte are not compared");
}

#[test]
fn an_answer_of_the_longest_length_is_remembered_and_a_longer_one_is_not() {
    let cache = ReplayCache::default();
    for (xid, length) in [(1, REPLAY_ANSWER_BYTES_MAX), (2, REPLAY_ANSWER_BYTES_MAX + 1)] {
        let key = ReplayKey::new(PEER, xid, b"call");
        let Verdict::New(ticket) = cache.begin(key) else { unreachable!("it is the first") };
        ticket.answered(&vec![0; length]);
        let is_kept =
            matches!(cache.begin(key), Verdict::Answered(answer) if answer.len() == length);
        assert_eq!(is_kept, length <= REPLAY_ANSWER_BYTES_MAX);
    }
}

#[test]
fn an_answer_is_remembered_for_three_minutes() {
    let cache = ReplayCache::default();
    cache.tick(10);
    let key = ReplayKey::new(PEER, 1, b"call");
    let Verdict::New(ticket) = cache.begin(key) else { unreachable!("it is the first") };
    ticket.answered(b"answer");
    cache.tick(10 + REPLAY_SECONDS_MAX);
    assert!(matches!(cache.begin(key), Verdict::Answered(_)));
    cache.tick(11 + REPLAY_SECONDS_MAX);
    assert!(matches!(cache.begin(key), Verdict::New(_)));
}

#[test]
fn a_back_channel_is_full_at_its_bound_and_takes_records_again_when_it_was_emptied() {
    let backchannel = Backchannel::new(|| {});
    let record = vec![0; BACKCHANNEL_BYTES_MAX / 4];
    (0..4).for_each(|_| backchannel.send(&record).unwrap());
    assert_eq!(backchannel.send(&[0]), Err(SendError::Full));
    let mut encoder = Encoder::new();
    backchannel.take_into(&mut encoder);
    assert_eq!(encoder.bytes().len(), 4 * record.len());
    backchannel.send(&record).unwrap();
}

#[test]
fn numbers_of_calls_and_back_channels_are_not_given_twice() {
    let [one, other] = [Backchannel::new(|| {}), Backchannel::new(|| {})];
    assert_ne!(one.id(), other.id());
    let numbers = [one.next_xid(), one.next_xid(), one.next_xid()];
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert!(numbers.iter().all(|number| one.has_numbered(*number)));
    assert!(!one.has_numbered(numbers[2] + 1) && !other.has_numbered(numbers[0]));
}
