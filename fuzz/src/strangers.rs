//! A server in one process with a victim, and strangers that the bytes of an input control.

mod victim;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, OnceLock};

use comity_export::{Exports, RpcPeer, Source};
use comity_nfs3::{Mount, Nfs3, Nlm, Nsm};
use comity_nfs4::{Nfs4, Versions};
use comity_proto::nfs4::{CompoundHead, NfsFh4, Stateid4, operation as op};
use comity_proto::{mount, nfs3, nfs4, nlm, nsm};
use comity_rpc::{Answered, Backchannel, Dispatcher, Program};
use comity_state::Engine;
use comity_xdr::{Encoder, Opaque};

use self::victim::{Known, STEPS, Told};
use crate::town::Bytes;
use crate::{assert_one_reply, call_record_as, nobody_known};

/// The victim's host, and the one of a listed user. No export is offered to the third.
const HOSTS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(192, 0, 2, 1), Ipv4Addr::new(192, 0, 2, 3), Ipv4Addr::new(192, 0, 2, 2)];

/// Address, port and uid of each stranger: a user of the victim's host, a user of another listed
/// host, an unlisted host, and a user of the victim's own client.
const CALLERS: [(Ipv4Addr, u16, u32); 4] =
    [(HOSTS[0], 40_000, 0), (HOSTS[1], 700, 1000), (HOSTS[2], 700, 0), (HOSTS[0], 701, 1000)];

/// The number of the user of the victim's own client. It uses the second slot of the victim's
/// session, and leaves out what no server can tell from the victim: the next turns of the victim's
/// slot and of its open-owner, and all of NLM and NSM, which name no user (docs/security.md).
const BESIDE: usize = 3;

/// The programs that strangers call.
const PROGRAMS: [(u32, u32); 4] =
    [(nfs3::PROGRAM, 3), (mount::PROGRAM, 3), (nlm::PROGRAM, 4), (nsm::PROGRAM, 1)];

/// The bytes in raw arguments that stand for something of the victim: the kind, then the index.
const NAMED: u8 = 0xfb;

/// The server, the victim and the strangers.
pub struct Strangers {
    dispatcher: Dispatcher<RpcPeer, Arc<Exports>>,
    engine: Arc<Engine>,
    victim: RpcPeer,
    strangers: [RpcPeer; CALLERS.len()],
    known: Known,
    /// The xids of the victim's calls, and of all others.
    xids: [u32; 2],
}

impl Strangers {
    /// A server, at which the victim holds files in every way.
    ///
    /// # Panics
    /// If there can be none.
    #[must_use]
    pub fn new() -> Self {
        let text = b"/export 192.0.2.1(rw,secure,no_root_squash) 192.0.2.3(rw,insecure)\n".to_vec();
        let (plan, _) = crate::plan(Source::Text { name: "fuzz".into(), text }).expect("a plan");
        let exports = Arc::new(Exports::new(plan));
        let memory = nobody_known();
        let (engine, clock) = (Arc::clone(&memory.engine), memory.clock);
        let (now, later) = (move || clock.now(), move || clock.now());
        let nlm = Nlm::new(Arc::clone(&exports), Arc::clone(&engine), now, Arc::new(|_| true));
        let programs: Vec<Arc<dyn Program<RpcPeer>>> = vec![
            Arc::new(Nfs3::new(Arc::clone(&exports), [1; 8])),
            Arc::new(Nfs4::new(Arc::clone(&exports), [1; 8], Versions::ALL, memory)),
            Arc::new(Mount::new(Arc::clone(&exports))),
            Arc::new(nlm.messaging(sync_channel(1).0)),
            Arc::new(Nsm::new(Arc::clone(&engine), later, 3)),
        ];
        let mut strangers = Self {
            dispatcher: Dispatcher::new(programs, exports),
            engine,
            victim: visitor(HOSTS[0], 700),
            strangers: CALLERS.map(|(address, port, _)| visitor(address, port)),
            known: Known::default(),
            xids: [0; 2],
        };
        strangers.begin();
        strangers
    }

    /// Runs the steps of the victim. Before each of them, strangers make the calls that an input
    /// describes.
    ///
    /// # Panics
    /// The victim gets other answers than if it were alone.
    pub fn disturb(mut self, input: &[u8]) {
        static ALONE: OnceLock<Vec<(Told, [usize; 3])>> = OnceLock::new();
        let alone = ALONE.get_or_init(|| {
            let mut quiet = Self::new();
            (0..STEPS.len()).map(|step| quiet.step(step)).collect()
        });
        let mut bytes = Bytes(input);
        for (step, alone) in alone.iter().enumerate() {
            for _ in 0..bytes.below(8) {
                self.call(&mut bytes);
            }
            assert_eq!(self.step(step), *alone, "step {step} of the victim");
        }
    }

    /// One step of the victim: the replies that it gets, and the opens, locks and waiting locks of
    /// all.
    fn step(&mut self, step: usize) -> (Told, [usize; 3]) {
        let told = STEPS[step](self);
        let census = self.engine.census();
        (told, [census.opens, census.locks, census.waits])
    }

    /// A stranger calls.
    fn call(&mut self, bytes: &mut Bytes<'_>) {
        let who = bytes.below(CALLERS.len());
        let (program, procedure, arguments) = match bytes.below(4) {
            0 if who != BESIDE => self.raw(bytes),
            1 if who != BESIDE => self.raw_operations(bytes),
            _ => self.operations(bytes, who),
        };
        self.xids[1] += 1;
        let (_, _, uid) = CALLERS[who];
        let xid = 1 << 31 | self.xids[1];
        let record = call_record_as(uid, xid, program, procedure, &arguments);
        self.dispatch(&self.strangers[who], &record);
    }

    /// A call of any procedure with any arguments.
    fn raw(&self, bytes: &mut Bytes<'_>) -> ((u32, u32), u32, Vec<u8>) {
        let program = PROGRAMS[bytes.below(PROGRAMS.len())];
        (program, u32::from(bytes.next() % 32), self.filled(bytes.some()))
    }

    /// A COMPOUND of any operations with any arguments.
    fn raw_operations(&self, bytes: &mut Bytes<'_>) -> ((u32, u32), u32, Vec<u8>) {
        let (minorversion, operations) = (bytes.below(3) as u32, u32::from(bytes.next() % 8));
        let mut call = Encoder::new();
        call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations });
        call.raw(&self.filled(bytes.some()));
        ((nfs4::PROGRAM, 4), nfs4::procedure::COMPOUND, call.bytes().to_vec())
    }

    /// An operation on a file of the victim with one of its stateids, perhaps in its session.
    fn operations(&mut self, bytes: &mut Bytes<'_>, who: usize) -> ((u32, u32), u32, Vec<u8>) {
        let (minorversion, sequenced) = (bytes.below(3) as u32, bytes.below(2) as u32);
        let mut call = Encoder::new();
        let operations = 2 + sequenced;
        call.value(&CompoundHead { tag: Opaque(b""), minorversion, operations });
        if sequenced == 1 {
            let ahead = bytes.below(3) as u32;
            call.value(&op::SEQUENCE);
            call.value(&match who {
                BESIDE => self.known.sequence_beside(ahead),
                _ => self.known.sequence(ahead),
            });
        }
        let handle: NfsFh4<'_> = Opaque(self.known.handle(bytes.next()));
        call.value(&op::PUTFH);
        call.value(&handle);
        call.value(&(u32::from(bytes.next()) % 80));
        let order = bytes.next();
        let stateid = self.stateid(bytes);
        // Arguments of CLOSE and similar operations begin with a seqid, those of LOCKU with a type.
        for _ in 0..order % 3 {
            call.value(&u32::from(bytes.next()));
        }
        call.value(&stateid);
        call.raw(&self.filled(bytes.some()));
        call.raw(&[0; 32]);
        ((nfs4::PROGRAM, 4), nfs4::procedure::COMPOUND, call.bytes().to_vec())
    }

    /// A stateid of the victim, as it is or altered.
    fn stateid(&self, bytes: &mut Bytes<'_>) -> Stateid4 {
        let mut stateid = self.known.stateid(bytes.next());
        match bytes.below(4) {
            0 => stateid.seqid = 0,
            1 => stateid.seqid = stateid.seqid.wrapping_add(1),
            2 => stateid.other[usize::from(bytes.next()) % 12] ^= 1,
            _ => {}
        }
        stateid
    }

    /// Replaces placeholders in arguments by handles, stateids and other data of the victim.
    fn filled(&self, arguments: &[u8]) -> Vec<u8> {
        let (mut filled, mut rest) = (Vec::new(), arguments);
        while let Some((first, behind)) = rest.split_first() {
            if let [NAMED, kind, which, behind @ ..] = rest {
                filled.extend(self.known.named(*kind, *which));
                rest = behind;
            } else {
                filled.push(*first);
                rest = behind;
            }
        }
        filled
    }

    /// Makes a call of the victim; gives the whole reply.
    fn ask(&mut self, program: (u32, u32), procedure: u32, arguments: &[u8]) -> Vec<u8> {
        self.xids[0] += 1;
        let record = call_record_as(0, self.xids[0], program, procedure, arguments);
        self.dispatch(&self.victim, &record)
    }

    fn dispatch(&self, visitor: &RpcPeer, record: &[u8]) -> Vec<u8> {
        let mut replies = Encoder::new();
        let peer = visitor.peer().ip();
        match self.dispatcher.answer(record, peer, visitor, &mut replies) {
            Ok(Answered::Later(late)) => drop(late.finish(&mut replies)),
            Ok(Answered::Now | Answered::Refused(_)) => {}
            Ok(Answered::Never | Answered::Undecided) => panic!("a call without an answer"),
            Ok(Answered::StartTls) => panic!("TLS that was not offered"),
            Err(hangup) => panic!("a call that is none: {hangup}"),
        }
        assert_one_reply(record, &replies);
        replies.bytes().to_vec()
    }
}

impl Default for Strangers {
    fn default() -> Self {
        Self::new()
    }
}

/// A caller with a connection of its own.
fn visitor(address: Ipv4Addr, port: u16) -> RpcPeer {
    let line = Arc::new(Backchannel::new(|| {}));
    RpcPeer::on(SocketAddr::new(IpAddr::V4(address), port), &line)
}
