//! Makes calls through the whole stack in one process, from the received record to the bytes of the
//! reply, for callgrind: `instructions OPERATION CALLS`.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use comity_backend::{Passthrough, PassthroughOptions};
use comity_bench::layout::{CALLER, Layout};
use comity_export::{Exports, HandleKey, Source, Sources, Visitor, load};
use comity_nfs3::{Mount, Nfs3};
use comity_proto::mount::{self, MountOk, Mountstat3};
use comity_proto::nfs3::{self, Diropargs3, Lookup3res, Read3args, Result3};
use comity_rpc::{
    Answered, AuthSys, CallHeader, Dispatcher, Flavor, OpaqueAuth, RecordLimits, Scan, next_record,
};
use comity_vfs::Fs;
use comity_xdr::{Counted, Decoder, Encode, Encoder, Opaque};

/// Replies after which the buffer is emptied, as a server does after a batch.
const BATCH: u64 = 8;
/// Bytes of a successful reply before its results, with the record mark.
const RESULTS_AT: usize = 28;
const LIMITS: RecordLimits = RecordLimits { bytes_max: 1 << 21 };

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let operation = arguments.next().context("no operation")?;
    let calls: u64 = arguments.next().context("no count")?.parse()?;
    // A thread that has acted for callers keeps their ids; callgrind writes its file under the
    // first thread's.
    let worker = std::thread::spawn(move || make_calls(&operation, calls));
    worker.join().map_err(|_| anyhow::anyhow!("panic"))?
}

fn make_calls(operation: &str, calls: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let layout = Layout::build(folder.path())?;
    let mut stack = Stack::new(&layout)?;
    let mut record = stack.prepare(operation)?;
    for number in 0..calls {
        if number % BATCH == 0 {
            stack.replies.clear(1 << 20);
        }
        stack.answer(&mut record)?;
    }
    Ok(())
}

/// All there is between a record and its reply.
struct Stack {
    dispatcher: Dispatcher<Visitor>,
    visitor: Visitor,
    peer: SocketAddr,
    replies: Encoder,
    path: Vec<u8>,
}

impl Stack {
    fn new(layout: &Layout) -> Result<Self> {
        let path = layout.root();
        let source = Source::export("bench", path, "127.0.0.1(rw,insecure,no_root_squash)");
        let open = |request: &comity_export::ExportRequest<'_>| {
            let fs = Passthrough::open(request.path, PassthroughOptions::default());
            fs.map(|fs| Arc::new(fs) as Arc<dyn Fs>).map_err(|error| error.to_string())
        };
        let loaded = load(&Sources::new(vec![source]), &open, HandleKey::new([7; 16]), None);
        let Ok((plan, _)) = loaded else { bail!("no plan") };
        let exports = Arc::new(Exports::new(plan));
        let mount = Arc::new(Mount::new(Arc::clone(&exports)));
        let peer = SocketAddr::from(([127, 0, 0, 1], 777));
        Ok(Self {
            dispatcher: Dispatcher::new(vec![Arc::new(Nfs3::new(exports, [1; 8])), mount]),
            visitor: Visitor::new(peer),
            peer,
            replies: Encoder::new(),
            path: path.as_os_str().as_encoded_bytes().to_vec(),
        })
    }

    /// The record of a call of this operation; it has been made once.
    fn prepare(&mut self, operation: &str) -> Result<Vec<u8>> {
        let root = self.mount()?;
        let place = |dir, name: &'static str| Diropargs3 {
            dir: Opaque(dir),
            name: Opaque(name.as_bytes()),
        };
        let small = self.lookup(&place(&root, Layout::SMALL))?;
        let data = self.lookup(&place(&root, Layout::DATA))?;
        let record = match operation {
            "getattr" => {
                let file = self.lookup(&place(&small, "f000007"))?;
                nfs(nfs3::procedure::GETATTR, &Opaque::<64>(&file))
            }
            "lookup" => nfs(nfs3::procedure::LOOKUP, &place(&small, "f000007")),
            "read-4k" => {
                let file = self.lookup(&place(&data, "read"))?;
                let arguments = Read3args { file: Opaque(&file), offset: 4096, count: 4096 };
                nfs(nfs3::procedure::READ, &arguments)
            }
            other => bail!("no operation `{other}`"),
        };
        self.results(record.clone())?;
        Ok(record)
    }

    fn mount(&mut self) -> Result<Vec<u8>> {
        let arguments = Opaque::<1024>(&self.path.clone());
        let program = (mount::PROGRAM, mount::VERSION, mount::procedure::MNT);
        let reply = self.results(record(program, &arguments))?;
        let mut results = Decoder::new(&reply);
        ensure!(results.value::<Mountstat3>()? == Mountstat3::Ok, "MNT fails");
        Ok(results.value::<MountOk<'_>>()?.handle.0.to_vec())
    }

    fn lookup(&mut self, place: &Diropargs3<'_>) -> Result<Vec<u8>> {
        let reply = self.results(nfs(nfs3::procedure::LOOKUP, place))?;
        match Decoder::whole::<Lookup3res<'_>>(&reply)? {
            Result3::Ok(found) => Ok(found.object.0.to_vec()),
            Result3::Fail(status, _) => bail!("LOOKUP is answered {status:?}"),
        }
    }

    /// Answers a call, with success; gives the results.
    fn results(&mut self, mut record: Vec<u8>) -> Result<Vec<u8>> {
        self.replies.clear(1 << 20);
        self.answer(&mut record)?;
        let reply = self.replies.bytes();
        let results = reply.get(RESULTS_AT..).context("a short reply")?;
        ensure!(results.starts_with(&[0; 4]), "a status: {results:?}");
        Ok(results.to_vec())
    }

    /// What the server does with a record that it has received.
    fn answer(&mut self, buffer: &mut [u8]) -> Result<()> {
        let Ok(Scan::Record { body, .. }) = next_record(buffer, &LIMITS) else {
            bail!("no record");
        };
        let record = &buffer[body];
        let answered =
            self.dispatcher.answer(record, self.peer.ip(), &self.visitor, &mut self.replies);
        ensure!(matches!(answered, Ok(Answered::Now)), "no reply at once");
        Ok(())
    }
}

fn nfs(procedure: u32, arguments: &impl Encode) -> Vec<u8> {
    record((nfs3::PROGRAM, nfs3::VERSION, procedure), arguments)
}

/// A call as it is received, its record mark included.
fn record((program, version, procedure): (u32, u32, u32), arguments: &impl Encode) -> Vec<u8> {
    let mut credential = Encoder::new();
    credential.value(&AuthSys {
        stamp: 0,
        machine_name: Opaque(b"comity-bench"),
        uid: CALLER,
        gid: CALLER,
        gids: Counted(vec![CALLER]),
    });
    let body = Opaque(credential.bytes());
    let credential = OpaqueAuth { flavor: Flavor::SYS, body };
    let verifier = OpaqueAuth::NONE;
    let mut encoder = Encoder::new();
    let start = encoder.begin_record();
    encoder.value(&CallHeader { xid: 7, program, version, procedure, credential, verifier });
    encoder.value(arguments);
    encoder.end_record(start);
    encoder.bytes().to_vec()
}
