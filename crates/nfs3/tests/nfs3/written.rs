//! The length of a file that an NFSv4 client has delegated for writing is the one that this client
//! reports.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use comity_coherence::Hosts;
use comity_proto::nfs3::{
    Access3args, Access3res, Entryplus3, Fattr3, Lookup3res, PostOpAttr, Readdirplus3args,
    procedure,
};
use comity_state::{Effect, Engine, FileKey, Sender, Share, Stateid};
use comity_xdr::{Decoder, Opaque};

use crate::recalls::{Delegate, JUKEBOX, NOW, delegate, delegate_beside, place};

/// The file's change attribute when it was delegated, and the size and change attribute that its
/// writer reports.
const GIVEN: u64 = 7;
const WRITTEN: (u64, u64) = (4096, GIVEN + 1);

impl Delegate {
    fn getattr(&self) -> Result<Fattr3, u32> {
        let told = self.world.call(procedure::GETATTR, &Opaque::<64>(&self.file));
        let mut told = Decoder::new(&told);
        match told.value().unwrap() {
            0 => Ok(told.value().unwrap()),
            status => Err(status),
        }
    }

    /// The file whose attributes a client is asked for.
    fn asked(&self) -> Option<FileKey> {
        match self.engine.poll_effect()? {
            Effect::GetAttr { client, file } => {
                assert_eq!(client.id(), self.client.id());
                Some(file)
            }
            other => panic!("{other:?}"),
        }
    }

    /// The file's attributes in the replies of LOOKUP, ACCESS and READDIRPLUS.
    fn by_the_way(&self) -> [PostOpAttr; 3] {
        let looked = self.world.call(procedure::LOOKUP, &place(&self.world, "a"));
        let Ok(Lookup3res::Ok(looked)) = Decoder::whole(&looked) else { panic!("LOOKUP") };
        let args = Access3args { object: Opaque(&self.file), access: 1 };
        let access = self.world.call(procedure::ACCESS, &args);
        let Ok(Access3res::Ok(access)) = Decoder::whole(&access) else { panic!("ACCESS") };
        [looked.obj_attributes, access.obj_attributes, self.listed()]
    }

    fn listed(&self) -> PostOpAttr {
        let (dir, cookieverf) = (Opaque(&self.world.root[..]), [0; 8]);
        let (cookie, dircount, maxcount) = (0, 4096, 4096);
        let args = Readdirplus3args { dir, cookie, cookieverf, dircount, maxcount };
        let told = self.world.call(procedure::READDIRPLUS, &args);
        let mut told = Decoder::new(&told);
        assert_eq!(told.value::<u32>(), Ok(0));
        let _: (PostOpAttr, [u8; 8]) = (told.value().unwrap(), told.value().unwrap());
        while told.value().unwrap() {
            let entry: Entryplus3<'_> = told.value().unwrap();
            if entry.entry.name.0 == b"a" {
                assert!(entry.name_handle.is_some());
                return entry.name_attributes;
            }
        }
        panic!("it is not listed")
    }

    fn give_back(&self, stateid: &Stateid) {
        let file = self.world.exports.current().unseal_key(&self.file).unwrap();
        self.engine.delegreturn((Sender::of(NOW, &self.client), &file), stateid).unwrap();
    }
}

#[test]
fn getattr_asks_the_writer() {
    let (writer, stateid) = delegate(Share::BOTH);
    writer.engine.delegated_at(&writer.client, &stateid, GIVEN);
    assert_eq!(writer.getattr(), Err(JUKEBOX), "it is being asked");
    let file = writer.asked().expect("somebody is asked");
    assert_eq!(writer.getattr(), Err(JUKEBOX));
    assert!(writer.asked().is_none(), "once");
    writer.engine.writer_attributes(NOW, &writer.client, &file, Some(WRITTEN));
    assert_eq!(writer.getattr().expect("it has answered").size, WRITTEN.0);
    writer.give_back(&stateid);
    assert_eq!(writer.getattr().expect("nobody is asked").size, 0);
}

#[test]
fn a_call_waits_for_a_writer_that_answers_at_once() {
    let knows = |engine: Arc<Engine>| {
        let knows = Hosts::new(Arc::clone(&engine), || NOW);
        knows.pausing(Box::new(move |moment: Duration| {
            assert!(moment <= Duration::from_millis(1));
            if let Some(Effect::GetAttr { client, file }) = engine.poll_effect() {
                engine.writer_attributes(NOW, &client, &file, Some(WRITTEN));
            }
            true
        }))
    };
    let (writer, stateid) = delegate_beside(Share::BOTH, knows);
    writer.engine.delegated_at(&writer.client, &stateid, GIVEN);
    let told = writer.getattr().expect("it was waited for");
    assert_eq!(told.size, WRITTEN.0);
    // The clock of these tests stands still soon after 1970, but the time of the answer is the real
    // time.
    assert!(told.mtime.seconds > 1 << 30 && told.ctime == told.mtime, "it is seen to have changed");
}

#[test]
fn a_call_waits_a_tenth_of_a_second_at_most() {
    let pauses = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&pauses);
    let knows = |engine| {
        Hosts::new(engine, || NOW).pausing(Box::new(move |moment: Duration| {
            count.fetch_add(moment.as_millis() as u32, Ordering::Relaxed);
            true
        }))
    };
    let (writer, _) = delegate_beside(Share::BOTH, knows);
    assert_eq!(writer.getattr(), Err(JUKEBOX));
    assert_eq!(pauses.load(Ordering::Relaxed), 100);
}

#[test]
fn other_replies_leave_out_attributes_that_may_be_old() {
    let (writer, stateid) = delegate(Share::BOTH);
    assert_eq!(writer.by_the_way(), [None; 3]);
    assert!(writer.asked().is_none(), "the writer is asked for them");
    writer.give_back(&stateid);
    assert!(writer.by_the_way().iter().all(Option::is_some));
    let (reader, _) = delegate(Share::READ);
    assert!(
        reader.by_the_way().iter().all(Option::is_some),
        "attributes are left out beside a read delegation"
    );
    assert!(reader.getattr().is_ok());
}
