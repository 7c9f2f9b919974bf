//! Requests of a host. Their arguments are well-formed, and name so few files, owners and ranges
//! that requests conflict.

use comity_proto::nlm::{
    self, Netobj, Nlm4Cancargs, Nlm4Lock, Nlm4Lockargs, Nlm4Notify, Nlm4Share, Nlm4Shareargs,
    Nlm4Testargs, Nlm4Unlockargs, procedure,
};
use comity_xdr::{Encode, Encoder, Opaque};

use super::{Locksmith, assert_readable};
use crate::town::Bytes;

/// The requested procedure, and in half of the cases the message that asks for it.
const PROCEDURES: [u32; 12] = [
    procedure::TEST,
    procedure::LOCK,
    procedure::CANCEL,
    procedure::UNLOCK,
    procedure::TEST_MSG,
    procedure::LOCK_MSG,
    procedure::CANCEL_MSG,
    procedure::UNLOCK_MSG,
    procedure::SHARE,
    procedure::UNSHARE,
    procedure::NM_LOCK,
    procedure::FREE_ALL,
];

/// The difference between the numbers of an answer's procedure and of its message's.
const ANSWER: u32 = procedure::TEST_RES - procedure::TEST_MSG;

/// The difference between the numbers of a message and of the procedure that it stands for.
const MESSAGE: u32 = procedure::TEST_MSG - procedure::TEST;

/// The file, owner and range of a call.
struct Wish<'a> {
    cookie: Netobj<'a>,
    alock: Nlm4Lock<'a>,
    flags: u8,
}

impl Locksmith {
    /// A host asks for something.
    pub(super) fn wish(&mut self, who: usize, bytes: &mut Bytes<'_>) {
        let procedure = PROCEDURES[bytes.below(PROCEDURES.len())];
        let handle = self.handles[bytes.below(self.handles.len())].clone();
        let wish = Wish::read(bytes, &handle);
        let arguments = wish.arguments(procedure);
        match procedure {
            procedure::TEST_MSG..=procedure::UNLOCK_MSG => {
                self.message(who, procedure, (&arguments, wish.cookie));
            }
            _ => drop(self.ask(who, procedure, &arguments)),
        }
    }

    /// Sends a message, and checks its answer. The answer has the right procedure and host, and if
    /// the call changes nothing, the same content as a direct reply.
    fn message(&mut self, who: usize, number: u32, (arguments, cookie): (&[u8], Netobj<'_>)) {
        self.send();
        self.ask(who, number, arguments);
        let message = self.messages.try_recv().expect("an answer");
        self.owed = 0;
        assert_eq!(message.procedure, number + ANSWER);
        assert_eq!(message.host, self.visitors[who].peer().ip());
        assert_readable(&message);
        let mut named = Encoder::new();
        named.value(&cookie);
        assert!(message.arguments.starts_with(named.bytes()), "the answer to another call");
        if number == procedure::TEST_MSG {
            let told = self.ask(who, number - MESSAGE, arguments);
            assert_eq!(message.arguments, told, "a message tells what is told at once");
        }
    }
}

impl<'a> Wish<'a> {
    fn read<'i: 'a>(bytes: &mut Bytes<'i>, handle: &'a [u8]) -> Self {
        let (flags, owner) = (bytes.next(), bytes.next());
        // An offset in the lower or the upper half of 64 bits.
        let number = |bytes: &mut Bytes<'_>| match bytes.next() {
            low @ 0..=199 => u64::from(low),
            high => u64::MAX - u64::from(u8::MAX - high),
        };
        let (l_offset, l_len) = (number(bytes), number(bytes));
        let oh = Opaque(if owner & 1 == 0 { b"one" } else { b"other" });
        let caller_name = Opaque(b"host");
        let svid = i32::from(owner >> 1 & 3);
        let cookie = Opaque(if flags & 0x80 == 0 { b"cookie" } else { bytes.some() });
        let alock = Nlm4Lock { caller_name, fh: Opaque(handle), oh, svid, l_offset, l_len };
        Self { cookie, alock, flags }
    }

    fn flag(&self, bit: u8) -> bool {
        self.flags >> bit & 1 == 1
    }

    fn arguments(&self, number: u32) -> Vec<u8> {
        let (cookie, alock) = (self.cookie, self.alock);
        let (exclusive, block, reclaim) = (self.flag(0), self.flag(1), self.flag(2));
        match number {
            procedure::TEST | procedure::TEST_MSG => {
                encoded(&Nlm4Testargs { cookie, exclusive, alock })
            }
            procedure::LOCK | procedure::LOCK_MSG | procedure::NM_LOCK => {
                let state = i32::from(self.flags >> 3 & 1);
                encoded(&Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state })
            }
            procedure::CANCEL | procedure::CANCEL_MSG => {
                encoded(&Nlm4Cancargs { cookie, block, exclusive, alock })
            }
            procedure::UNLOCK | procedure::UNLOCK_MSG => encoded(&Nlm4Unlockargs { cookie, alock }),
            procedure::FREE_ALL => {
                encoded(&Nlm4Notify { name: alock.caller_name, state: i32::from(self.flags) })
            }
            _ => encoded(&self.share()),
        }
    }

    fn share(&self) -> Nlm4Shareargs<'a> {
        let nlm::Nlm4Lock { caller_name, fh, oh, .. } = self.alock;
        let (mode, access) = (u32::from(self.flags >> 3 & 3), u32::from(self.flags >> 5 & 3));
        let share = Nlm4Share { caller_name, fh, oh, mode, access };
        Nlm4Shareargs { cookie: self.cookie, share, reclaim: self.flag(2) }
    }
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes().to_vec()
}
