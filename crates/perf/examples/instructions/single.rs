//! One call, made again and again.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use comity_bench::Operation;
use comity_bench::fixture_tree::FixtureTree;
use comity_nfs3::{Mount, Nfs3};
use comity_proto::mount::{self, MountOk, Mountstat3};
use comity_proto::nfs3::{self, Diropargs3, Lookup3res, Read3args, Readdirplus3args, Result3};
use comity_xdr::{Decoder, Opaque};

use crate::calls::{nfs, record};
use crate::sequenced;
use crate::setting;
use crate::stack::Stack;

/// Makes `calls` calls of an operation.
pub(crate) fn run(operation: &str, calls: u64) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let layout = FixtureTree::build(folder.path())?;
    if let Ok(Operation::InSession(operation)) = operation.parse() {
        let stack = sequenced::serving(setting::exports(layout.root())?);
        return sequenced::run(stack, &layout, operation, calls);
    }
    let mut stack = serving(&layout)?;
    let mut record = prepare(&mut stack, &layout, operation)?;
    (0..calls).try_for_each(|_| stack.answer(&mut record))
}

fn serving(layout: &FixtureTree) -> Result<Stack> {
    let exports = setting::exports(layout.root())?;
    let mount = Arc::new(Mount::new(Arc::clone(&exports)));
    let nfs = Arc::new(Nfs3::new(Arc::clone(&exports), [1; 8]));
    Ok(Stack::new(vec![nfs, mount], exports))
}

/// Longer than a directory must be unchanged before the server caches its listing.
const REST: Duration = Duration::from_millis(200);

/// The first 35 entries or so of a directory.
fn page(dir: &[u8]) -> Readdirplus3args<'_> {
    let (cookie, cookieverf) = (0, [0; 8]);
    Readdirplus3args { dir: Opaque(dir), cookie, cookieverf, dircount: 1_024, maxcount: 65_536 }
}

/// Makes the record of a call of this operation, and makes the call a few times.
fn prepare(stack: &mut Stack, layout: &FixtureTree, operation: &str) -> Result<Vec<u8>> {
    let root = mount(stack, layout)?;
    let place =
        |dir, name: &'static str| Diropargs3 { dir: Opaque(dir), name: Opaque(name.as_bytes()) };
    let small = lookup(stack, &place(&root, FixtureTree::SMALL))?;
    let data = lookup(stack, &place(&root, FixtureTree::DATA))?;
    let mut record = match operation {
        "getattr" => {
            let file = lookup(stack, &place(&small, "f000007"))?;
            nfs(nfs3::procedure::GETATTR, &Opaque::<64>(&file))
        }
        "lookup" => nfs(nfs3::procedure::LOOKUP, &place(&small, "f000007")),
        "read-4k" => {
            let file = lookup(stack, &place(&data, "read"))?;
            let arguments = Read3args { file: Opaque(&file), offset: 4096, count: 4096 };
            nfs(nfs3::procedure::READ, &arguments)
        }
        "readdirplus" => {
            // The server caches only listings of unchanged directories, and opens their objects at
            // the second listing.
            sleep(REST);
            nfs(nfs3::procedure::READDIRPLUS, &page(&small))
        }
        other => bail!("no operation `{other}`"),
    };
    (0..3).try_for_each(|_| stack.results(&mut record).map(drop))?;
    Ok(record)
}

fn mount(stack: &mut Stack, layout: &FixtureTree) -> Result<Vec<u8>> {
    let path = layout.root().as_os_str().as_encoded_bytes();
    let program = (mount::PROGRAM, mount::VERSION, mount::procedure::MNT);
    let reply = stack.results(&mut record(program, &Opaque::<1024>(path)))?;
    let mut results = Decoder::new(&reply);
    ensure!(results.value::<Mountstat3>()? == Mountstat3::Ok, "MNT fails");
    Ok(results.value::<MountOk<'_>>()?.handle.0.to_vec())
}

fn lookup(stack: &mut Stack, place: &Diropargs3<'_>) -> Result<Vec<u8>> {
    let reply = stack.results(&mut nfs(nfs3::procedure::LOOKUP, place))?;
    match Decoder::whole::<Lookup3res<'_>>(&reply)? {
        Result3::Ok(found) => Ok(found.object.0.to_vec()),
        Result3::Fail(status, _) => bail!("LOOKUP is answered {status:?}"),
    }
}
