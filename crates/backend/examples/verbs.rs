//! Measures the cost of single verbs of the passthrough. Usage: `verbs FOLDER [VERB [COUNT]]`;
//! without a verb it measures all of them. Under `strace -c -f` it shows which system calls a verb
//! makes.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

use comity_backend::{Passthrough, PassthroughOptions};
use comity_vfs::{
    Access, Create, Cred, Disk, Fs, Gid, Handle, Listed, Mode, Name, ReadInto, Result, SetAttr, Uid,
};

const FILES: usize = 1_000;

const VERBS: &[&str] = &[
    "getattr", "access", "lookup", "read", "read-1m", "write", "write-1m", "readlink", "create",
    "remove", "readdir", "cold", "switch",
];

struct Bench {
    fs: Passthrough,
    cred: Cred<Disk>,
    dir: Handle,
    files: Vec<(String, Handle)>,
    link: Handle,
    large: Handle,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let bench = prepare(&folder)?;
    let count = arguments.get(2).and_then(|count| count.parse().ok()).unwrap_or(200_000);
    for verb in VERBS {
        if arguments.get(1).is_none_or(|wanted| wanted == verb) {
            let begun = spent();
            let done = run(&bench, verb, count)?;
            let each = (spent() - begun).as_nanos() / done.max(1) as u128;
            println!("{verb:10} {each:9} ns each, {done} times");
        }
    }
    bench.fs.release_identity()
}

fn prepare(folder: &std::path::Path) -> Result<Bench> {
    let fs = match Passthrough::open(folder, PassthroughOptions::default()) {
        Ok(fs) => fs,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(1)
        }
    };
    let cred = Cred::new(Uid::new(1000), Gid::new(1000));
    let top = fs.root();
    let unique = format!("verbs-{}", std::process::id());
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let dir = fs.mkdir(&root, &top, Name::new(unique.as_bytes())?, &mode(0o777))?.value.handle;
    fs.setattr(&root, &dir, &mode(0o777), None)?;
    let make = |name: &str| {
        let how = Create::Guarded(mode(0o644));
        Ok(fs.create(&cred, &dir, Name::new(name.as_bytes())?, &how)?.value.handle)
    };
    let names = (0..FILES).map(|number| format!("file-{number}"));
    let files = names.map(|name| Ok((name.clone(), make(&name)?))).collect::<Result<Vec<_>>>()?;
    for (_, file) in &files {
        fs.write(&cred, file, 0, &[7; 4096])?;
    }
    let large = make("large")?;
    fs.write(&cred, &large, 0, &vec![7; 1 << 20])?;
    let link = fs.symlink(&cred, &dir, Name::new(b"link")?, b"target", &mode(0o777))?;
    std::thread::sleep(Duration::from_millis(100));
    Ok(Bench { cred, dir, files, link: link.value.handle, large, fs })
}

/// Processor time of this thread: others on the machine do not count.
fn spent() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

fn mode(bits: u32) -> SetAttr<Disk> {
    SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() }
}

fn run(bench: &Bench, verb: &str, count: usize) -> Result<usize> {
    let Bench { fs, cred, dir, files, link, large } = bench;
    let mut bytes = Vec::with_capacity(1 << 20);
    let block = vec![9_u8; 1 << 20];
    if matches!(verb, "readdir" | "cold") {
        return list(bench, verb == "cold", count);
    }
    let count = if verb.ends_with("1m") { count / 100 } else { count };
    for (step, (name, file)) in files.iter().cycle().take(count).enumerate() {
        bytes.clear();
        let mut into = ReadInto::new(&mut bytes);
        match verb {
            "getattr" => drop(fs.getattr(file)?),
            "access" => drop(fs.access(cred, file, Access::READ | Access::MODIFY)?),
            "lookup" => drop(fs.lookup(cred, dir, Name::new(name.as_bytes())?)?),
            "read" => drop(fs.read(cred, file, 0, 4096, &mut into)?),
            "read-1m" => drop(fs.read(cred, large, 0, 1 << 20, &mut into)?),
            "write" => drop(fs.write(cred, file, 0, &block[..4096])?),
            "write-1m" => drop(fs.write(cred, large, 0, &block)?),
            "readlink" => drop(fs.readlink(cred, link)?),
            "create" => make(bench, step)?,
            "remove" => unmake(bench, step)?,
            _ => switch(bench, step, file)?,
        }
    }
    Ok(count)
}

fn make(bench: &Bench, step: usize) -> Result<()> {
    let name = format!("new-{step}");
    let how = Create::Guarded(mode(0o644));
    bench.fs.create(&bench.cred, &bench.dir, Name::new(name.as_bytes())?, &how).map(drop)
}

fn unmake(bench: &Bench, step: usize) -> Result<()> {
    let name = format!("new-{step}");
    bench.fs.remove(&bench.cred, &bench.dir, Name::new(name.as_bytes())?).map(drop)
}

fn switch(bench: &Bench, step: usize, file: &Handle) -> Result<()> {
    let cred = Cred::new(Uid::new(1000 + (step % 2) as u32), Gid::new(1000));
    bench.fs.lookup(&cred, &bench.dir, Name::new(b"large")?)?;
    bench.fs.getattr(file).map(drop)
}

/// Lists the directory again and again in parts of 100; cold means after a change of it.
fn list(bench: &Bench, cold: bool, count: usize) -> Result<usize> {
    let (mut shown, mut pause) = (0, Duration::ZERO);
    let begun = spent();
    while shown < count {
        if cold {
            let now = spent();
            let name = Name::new(b"change")?;
            let root = Cred::new(Uid::new(0), Gid::new(0));
            bench.fs.mkdir(&root, &bench.dir, name, &mode(0o755))?;
            bench.fs.rmdir(&root, &bench.dir, name)?;
            std::thread::sleep(Duration::from_millis(100));
            pause += spent() - now;
        }
        shown += list_once(bench)?;
    }
    let each = (spent() - begun - pause).as_nanos() / shown as u128;
    println!("{:10} {each:9} ns an entry", if cold { "(cold)" } else { "(warm)" });
    Ok(shown)
}

fn list_once(bench: &Bench) -> Result<usize> {
    let (mut cookie, mut shown) = (0, 0);
    loop {
        let (mut part, from) = (0, cookie);
        let mut visit = |entry: &comity_vfs::Listing<'_, Disk>| {
            if part == 100 {
                return ControlFlow::Break(());
            }
            part += 1;
            cookie = entry.cookie;
            ControlFlow::Continue(())
        };
        bench.fs.readdir(&bench.cred, &bench.dir, from, Listed::Nodes, &mut visit)?;
        if part == 0 {
            return Ok(shown);
        }
        shown += part;
    }
}
