//! Operations of clients on files, and their answers to the server.

use comity_proto::nfs4::callback::{
    CbCompoundResultHead, CbGetattr4resok, CbResultHead, CbSequence4args, CbSequence4resok,
    operation as cb,
};
use comity_proto::nfs4::*;
use comity_rpc::OpaqueAuth;
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};

use self::operation as op;
use super::people::Has;
use super::{Bytes, FILES, Town};
use crate::results::Results;

/// A request that an input has a client make.
struct Wish<'i, 'b> {
    file: usize,
    bytes: &'b mut Bytes<'i>,
}

impl Town {
    /// A client asks for something.
    pub(super) fn ask(&mut self, who: usize, bytes: &mut Bytes<'_>) {
        let (file, kind) = (bytes.below(FILES.len()), bytes.next());
        let mut wish = Wish { file, bytes };
        match kind % 24 {
            0..=5 => self.open(who, &mut wish),
            6 | 7 => self.close(who, file, &wish),
            8..=11 => self.lock(who, &mut wish),
            12 => self.unlock(who, &mut wish),
            13 => self.give_back(who, file),
            14 => drop(self.compound(who, 1, |_, call| {
                call.value(&op::RECLAIM_COMPLETE);
                call.value(&false);
            })),
            15..=17 => self.use_data(who, &mut wish),
            18 => self.change_names(who, &mut wish),
            19 => self.about_stateids(who, &mut wish),
            20 => self.about_sessions(who, &mut wish),
            21 => self.downgrade(who, &mut wish),
            22 => drop(self.compound(who, 1, |person, call| {
                call.value(&op::RENEW);
                call.value(&person.clientid);
            })),
            _ => self.anything(who, &mut wish),
        }
    }

    fn open(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (modes, how, wants) = (wish.bytes.next(), wish.bytes.next(), wish.bytes.next());
        let (file, name) = (wish.file, FILES[wish.file]);
        let by_handle = matches!(how % 6, 3..=5);
        let attrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(b"") };
        let told = self.compound(who, if by_handle { 4 } else { 3 }, |person, call| {
            let had = person.has[file].delegation;
            let claim = match how % 6 {
                0..=2 => OpenClaim4::Null(Opaque(name)),
                3 => OpenClaim4::Previous(match modes >> 4 & 3 {
                    0 => OpenDelegationType4::None,
                    1 => OpenDelegationType4::Read,
                    _ => OpenDelegationType4::Write,
                }),
                4 => OpenClaim4::DelegCurFh(had),
                _ => OpenClaim4::Fh,
            };
            let openhow = match how % 6 {
                0 => Openflag4::Create(Createhow4::Unchecked(attrs)),
                1 => Openflag4::Create(Createhow4::Exclusive([how; 8])),
                _ => Openflag4::NoCreate,
            };
            go_to(call, by_handle.then_some(name));
            call.value(&op::OPEN);
            call.value(&Open4args {
                seqid: person.open_seqid.wrapping_add(1),
                share_access: u32::from(modes & 3) | u32::from(wants % 6) << 8,
                share_deny: u32::from(modes >> 2 & 3),
                owner: StateOwner4 {
                    clientid: person.clientid,
                    owner: Opaque(&[b'o', person.turn]),
                },
                openhow,
                claim,
            });
        });
        self.counted(who, &told, op::OPEN, true);
        for (_, stateid, delegates) in &told.stateids {
            let has = &mut self.people[who].has[file];
            *(if *delegates { &mut has.delegation } else { &mut has.open }) = *stateid;
        }
        if self.people[who].minor == 0 && told.status == 0 {
            self.confirm(who, file);
        }
    }

    fn confirm(&mut self, who: usize, file: usize) {
        let told = self.compound(who, 4, |person, call| {
            go_to(call, Some(FILES[file]));
            let (open_stateid, seqid) = (person.has[file].open, person.open_seqid.wrapping_add(1));
            call.value(&op::OPEN_CONFIRM);
            call.value(&OpenConfirm4args { open_stateid, seqid });
        });
        self.counted(who, &told, op::OPEN_CONFIRM, true);
        self.keep(who, file, &told);
    }

    fn close(&mut self, who: usize, file: usize, _: &Wish<'_, '_>) {
        let told = self.compound(who, 4, |person, call| {
            go_to(call, Some(FILES[file]));
            let (open_stateid, seqid) = (person.has[file].open, person.open_seqid.wrapping_add(1));
            call.value(&op::CLOSE);
            call.value(&Close4args { seqid, open_stateid });
        });
        self.counted(who, &told, op::CLOSE, true);
    }

    fn downgrade(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (file, modes) = (wish.file, wish.bytes.next());
        let told = self.compound(who, 4, |person, call| {
            go_to(call, Some(FILES[file]));
            call.value(&op::OPEN_DOWNGRADE);
            call.value(&OpenDowngrade4args {
                open_stateid: person.has[file].open,
                seqid: person.open_seqid.wrapping_add(1),
                share_access: u32::from(modes & 3),
                share_deny: u32::from(modes >> 2 & 3),
            });
        });
        self.counted(who, &told, op::OPEN_DOWNGRADE, true);
        self.keep(who, file, &told);
    }

    fn lock(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (file, how, name) = (wish.file, wish.bytes.next(), wish.bytes.next() % 16);
        let (offset, length) = range(wish.bytes);
        let is_new = how & 1 == 0;
        let told = self.compound(who, 4, |person, call| {
            let Has { open, lock, .. } = person.has[file];
            // In 4.0 there is one owner, and its seqids are counted.
            let name = [b'l', person.turn, if person.minor == 0 { 0 } else { name }];
            let (open_seqid, seqid) =
                (person.open_seqid.wrapping_add(1), person.lock_seqid.wrapping_add(1));
            let lock_owner = StateOwner4 { clientid: person.clientid, owner: Opaque(&name) };
            let locker = if is_new {
                let (open_stateid, lock_seqid) = (open, seqid);
                Locker4::New(OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner })
            } else {
                Locker4::Exist(ExistLockOwner4 { lock_stateid: lock, lock_seqid: seqid })
            };
            go_to(call, Some(FILES[file]));
            call.value(&op::LOCK);
            let (locktype, reclaim) = (lock_type(how >> 1), how & 0x80 != 0);
            call.value(&Lock4args { locktype, reclaim, offset, length, locker });
        });
        self.counted(who, &told, op::LOCK, is_new);
        self.keep(who, file, &told);
    }

    fn unlock(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (file, (offset, length)) = (wish.file, range(wish.bytes));
        let told = self.compound(who, 4, |person, call| {
            go_to(call, Some(FILES[file]));
            let (seqid, lock_stateid) = (person.lock_seqid.wrapping_add(1), person.has[file].lock);
            let locktype = NfsLockType4::Write;
            call.value(&op::LOCKU);
            call.value(&Locku4args { locktype, seqid, lock_stateid, offset, length });
        });
        self.counted(who, &told, op::LOCKU, false);
        self.keep(who, file, &told);
    }

    fn give_back(&mut self, who: usize, file: usize) {
        self.compound(who, 4, |person, call| {
            go_to(call, Some(FILES[file]));
            call.value(&op::DELEGRETURN);
            call.value(&person.has[file].delegation);
        });
    }

    fn use_data(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (file, what, by) = (wish.file, wish.bytes.next(), wish.bytes.next());
        let (offset, length) = range(wish.bytes);
        let count = length.min(5000) as u32;
        self.compound(who, 4, |person, call| {
            let has = person.has[file];
            let stateids = [has.open, has.lock, has.delegation, Stateid4::ANONYMOUS];
            let stateid = stateids[usize::from(by % 4)];
            go_to(call, Some(FILES[file]));
            match what % 8 {
                0 => with(call, op::READ, &Read4args { stateid, offset, count }),
                1 => with(call, op::READ_PLUS, &Read4args { stateid, offset, count }),
                2 => with(call, op::SEEK, &Seek4args { stateid, offset, what: u32::from(by >> 4) }),
                3 => with(call, op::ALLOCATE, &Range4args { stateid, offset, length }),
                4 => with(call, op::DEALLOCATE, &Range4args { stateid, offset, length }),
                5 => with(call, op::GETATTR, &Bitmap4::from_words([u32::MAX, !0x41_0000, 0])),
                6 => {
                    let (data, stable) = (Opaque(&b"some bytes"[..]), StableHow4::FileSync);
                    with(call, op::WRITE, &Write4args { stateid, offset, stable, data });
                }
                _ => {
                    let size = offset.to_be_bytes();
                    call.value(&op::SETATTR);
                    call.value(&stateid);
                    let attrmask = Bitmap4::of(&[attribute::SIZE]);
                    call.value(&Fattr4 { attrmask, attr_vals: Opaque(&size) });
                }
            }
        });
    }

    fn change_names(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (name, to) = (FILES[wish.file], FILES[wish.bytes.below(FILES.len())]);
        let removes = wish.bytes.flag();
        self.compound(who, if removes { 3 } else { 4 }, |_, call| {
            go_to(call, None);
            if removes {
                with(call, op::REMOVE, &Opaque::<'_, 255>(name));
            } else {
                call.value(&op::SAVEFH);
                let (oldname, newname) = (Opaque(name), Opaque(to));
                with(call, op::RENAME, &Rename4args { oldname, newname });
            }
        });
    }

    fn about_stateids(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (file, frees, which) = (wish.file, wish.bytes.flag(), wish.bytes.below(3));
        self.compound(who, 1, |person, call| {
            let Has { open, lock, delegation } = person.has[file];
            let all = [open, lock, delegation];
            if frees {
                with(call, op::FREE_STATEID, &all[which]);
            } else {
                with(call, op::TEST_STATEID, &Counted::<_, STATEIDS_MAX>(all.to_vec()));
            }
        });
    }

    fn about_sessions(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let what = wish.bytes.next();
        let Some(sessid) = self.people[who].session else { return };
        self.compound(who, 1, |person, call| match what % 4 {
            0 => with(call, op::DESTROY_SESSION, &sessid),
            1 => with(call, op::DESTROY_CLIENTID, &person.clientid),
            2 => {
                let (cb_program, sec_parms) = (u32::from(what), Counted(Vec::new()));
                with(call, op::BACKCHANNEL_CTL, &BackchannelCtl4args { cb_program, sec_parms });
            }
            _ => {
                let (dir, use_conn_in_rdma_mode) = (u32::from(what >> 2), false);
                let args = BindConnToSession4 { sessid, dir, use_conn_in_rdma_mode };
                with(call, op::BIND_CONN_TO_SESSION, &args);
            }
        });
        if what & 0x40 != 0 {
            // The client creates another session beside this one.
            self.people[who].session = None;
        }
    }

    /// Any operations at all.
    fn anything(&mut self, who: usize, wish: &mut Wish<'_, '_>) {
        let (count, file) = (u32::from(wish.bytes.next() % 8), wish.file);
        let operations = wish.bytes.some();
        self.compound(who, count + 3, |_, call| {
            go_to(call, Some(FILES[file]));
            call.raw(operations);
        });
    }

    /// Counts the seqid of a 4.0 owner up after an answer, except after a few failures (RFC 7530,
    /// 9.1.7).
    fn counted(&mut self, who: usize, told: &Results, number: u32, by_open_owner: bool) {
        let Some(status) = told.of(number) else { return };
        let uncounted = [
            Nfsstat4::StaleClientid,
            Nfsstat4::StaleStateid,
            Nfsstat4::BadStateid,
            Nfsstat4::BadSeqid,
            Nfsstat4::BadXdr,
            Nfsstat4::Resource,
            Nfsstat4::NoFileHandle,
        ];
        if uncounted.contains(&status) {
            return;
        }
        let person = &mut self.people[who];
        let seqid = if by_open_owner { &mut person.open_seqid } else { &mut person.lock_seqid };
        *seqid = seqid.wrapping_add(1);
    }

    fn keep(&mut self, who: usize, file: usize, told: &Results) {
        for (number, stateid, _) in &told.stateids {
            let has = &mut self.people[who].has[file];
            let locks = matches!(*number, op::LOCK | op::LOCKU);
            *(if locks { &mut has.lock } else { &mut has.open }) = *stateid;
        }
    }

    /// Each client gets a delegation of a file. The others ask for its attributes and want to write
    /// it.
    pub fn delegate(&mut self) {
        for who in 0..FILES.len() {
            // The client introduces itself, and answers the probe of its callback path.
            self.ask(who, &mut Bytes(&[0, 14]));
            self.callbacks.pump(self.age);
            self.answer(who, &mut Bytes(&[0]));
            self.open(who, &mut Wish { file: who, bytes: &mut Bytes(&[3, 0, 3]) });
            self.open(who, &mut Wish { file: who, bytes: &mut Bytes(&[3, 2, 3]) });
        }
        (0..FILES.len()).for_each(|who| self.want(who));
    }

    /// Another client asks about the file of `who`, and wants to write it.
    fn want(&mut self, who: usize) {
        let other = (who + 1) % FILES.len();
        self.use_data(other, &mut Wish { file: who, bytes: &mut Bytes(&[5, 3]) });
        self.open(other, &mut Wish { file: who, bytes: &mut Bytes(&[3, 2, 4]) });
        self.callbacks.pump(self.age);
    }

    /// Clients answer callbacks; the input says which client, how, and with how many bytes.
    pub fn replies(&mut self, input: &[u8]) {
        let mut bytes = Bytes(input);
        while !bytes.0.is_empty() {
            let (who, how) = (bytes.below(FILES.len()), bytes.next());
            self.reply(who, how, bytes.some());
            self.let_pass(std::time::Duration::from_secs(u64::from(how >> 4)));
            self.want(who);
            self.assert_bounded();
        }
    }

    /// Answers the first call with these bytes: after its number, after the header of an accepted
    /// call, or after the head of a CB_COMPOUND's results.
    fn reply(&mut self, who: usize, how: u8, body: &[u8]) {
        let Some(call) = self.asked(who) else { return };
        let mut reply = Encoder::new();
        reply.raw(&call[..4]);
        if how & 3 > 0 {
            reply.value(&1_u32);
        }
        if how & 3 > 1 {
            reply.value(&0_u32);
            reply.value(&OpaqueAuth::NONE);
            reply.value(&0_u32);
        }
        if how & 3 > 2 {
            let (status, results) = (u32::from(how >> 2 & 3), 2);
            reply.value(&CbCompoundResultHead { status, tag: Opaque(b""), results });
        }
        reply.raw(body);
        self.callbacks.heard(self.age, self.line(who).id(), reply.bytes());
    }

    /// The first callback that a client has not answered yet.
    fn asked(&mut self, who: usize) -> Option<Vec<u8>> {
        let mut said = Encoder::new();
        self.line(who).take_into(&mut said);
        let heard = &mut self.people[who].heard;
        heard.extend(records(said.bytes()));
        (!heard.is_empty()).then(|| heard.remove(0))
    }

    /// A client answers its first callback: correctly, with some status, or with any bytes.
    pub(super) fn answer(&mut self, who: usize, bytes: &mut Bytes<'_>) {
        let Some(call) = self.asked(who) else { return };
        let (line, how) = (self.line(who), bytes.next());
        let mut reply = Encoder::new();
        reply.raw(&call[..4]);
        match how {
            0..200 => answered(&mut reply, &call, how),
            _ => reply.raw(bytes.some()),
        }
        self.callbacks.heard(self.age, line.id(), reply.bytes());
    }
}

/// The records that the server has sent.
fn records(mut said: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((mark, behind)) = said.split_first_chunk() {
        let length = (u32::from_be_bytes(*mark) & !(1 << 31)) as usize;
        let (record, behind) = behind.split_at(length);
        records.push(record.to_vec());
        said = behind;
    }
    records
}

/// Makes a well-formed answer to a callback. If `how` is set, it says which operation fails.
fn answered(reply: &mut Encoder, call: &[u8], how: u8) {
    [1_u32, 0].iter().for_each(|word| reply.value(word));
    reply.value(&OpaqueAuth::NONE);
    reply.value(&0_u32);
    let (status, of_sequence) = (u32::from(how / 8), how % 8 == 7);
    let mut asked = Decoder::new(&call[5 * 4..]);
    let procedure: u32 = asked.value().expect("a procedure");
    if procedure == callback::procedure::CB_NULL {
        return;
    }
    asked.value::<OpaqueAuth<'_>>().expect("a credential");
    asked.value::<OpaqueAuth<'_>>().expect("a verifier");
    let head: callback::CbCompoundHead<'_> = asked.value().expect("a CB_COMPOUND");
    let results = if of_sequence { 1 } else { head.operations };
    reply.value(&CbCompoundResultHead { status, tag: head.tag, results });
    let mut number: u32 = asked.value().expect("an operation");
    if number == cb::CB_SEQUENCE {
        let args: CbSequence4args = asked.value().expect("its arguments");
        reply.value(&CbResultHead {
            operation: number,
            status: if of_sequence { status } else { 0 },
        });
        if of_sequence && status != 0 {
            return;
        }
        let CbSequence4args { sessionid, sequenceid, slotid, .. } = args;
        let (highest_slotid, target_highest_slotid) = (0, 0);
        let told = CbSequence4resok {
            sessionid,
            sequenceid,
            slotid,
            highest_slotid,
            target_highest_slotid,
        };
        reply.value(&told);
        number = asked.value().expect("an operation");
    }
    reply.value(&CbResultHead { operation: number, status });
    if number == cb::CB_GETATTR && status == 0 {
        let attrmask = Bitmap4::of(&[attribute::CHANGE, attribute::SIZE]);
        let values = [how; 16];
        reply.value(&CbGetattr4resok { attrmask, attr_vals: Opaque(&values) });
    }
}

/// Appends the operations that lead to the export, or to a file there.
fn go_to(call: &mut Encoder, file: Option<&[u8]>) {
    call.value(&op::PUTROOTFH);
    for name in [Some(&b"export"[..]), file].into_iter().flatten() {
        with(call, op::LOOKUP, &Opaque::<'_, 255>(name));
    }
}

fn with(call: &mut Encoder, number: u32, args: &impl Encode) {
    call.value(&number);
    call.value(args);
}

/// A range of bytes: mostly short ones near each other, some at the end of all.
fn range(bytes: &mut Bytes<'_>) -> (u64, u64) {
    let (from, length) = (bytes.next(), bytes.next());
    let offset = if from == u8::MAX { u64::MAX - 3 } else { u64::from(from) };
    (offset, if length == u8::MAX { u64::MAX } else { u64::from(length) })
}

fn lock_type(number: u8) -> NfsLockType4 {
    match number % 4 {
        0 => NfsLockType4::Read,
        1 => NfsLockType4::Write,
        2 => NfsLockType4::ReadWait,
        _ => NfsLockType4::WriteWait,
    }
}
