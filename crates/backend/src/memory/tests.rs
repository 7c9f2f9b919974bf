use comity_vfs::{Create, SetTime, Status};

use super::*;

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).unwrap()
}

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

fn file(memory: &Memory, at: &[u8]) -> Node<Disk> {
    let how = Create::Guarded(SetAttr { mode: Some(Mode::new(0o644)), ..SetAttr::default() });
    memory.create(&root(), &memory.root(), name(at), &how).unwrap().value
}

fn small(options: MemoryOptions) -> Memory {
    Memory::new(options).unwrap()
}

#[test]
fn handles_of_another_instance_are_stale() {
    let (one, other) = (small(MemoryOptions::default()), small(MemoryOptions::default()));
    assert_eq!(other.getattr(&one.root()), Err(Status::Stale));
    assert_eq!(one.getattr(&Handle::new(b"short").unwrap()), Err(Status::BadHandle));
}

#[test]
fn the_number_of_objects_is_bounded() {
    let memory = small(MemoryOptions { nodes_max: 2, ..MemoryOptions::default() });
    file(&memory, b"a");
    let made = memory.mkdir(&root(), &memory.root(), name(b"b"), &SetAttr::default());
    assert_eq!(made.map(drop), Err(Status::NoSpc));
    assert_eq!(memory.statfs(&root(), &memory.root()).unwrap().files_free, 0);
    memory.remove(&root(), &memory.root(), name(b"a")).unwrap();
    file(&memory, b"b");
}

#[test]
fn names_take_space_and_give_it_back() {
    let memory = small(MemoryOptions { bytes_max: 2_000, ..MemoryOptions::default() });
    let free = || memory.statfs(&root(), &memory.root()).unwrap().bytes_free;
    let at_start = free();
    let node = file(&memory, b"a");
    let linked = (0..)
        .map(|n: u32| n.to_string())
        .find_map(|n| memory.link(&root(), &node.handle, &memory.root(), name(n.as_bytes())).err());
    assert_eq!(linked, Some(Status::NoSpc));
    let mut names = Vec::new();
    let keep = &mut |entry: &Listing<'_, Disk>| {
        names.push(entry.name.bytes().to_vec());
        ControlFlow::Continue(())
    };
    memory.readdir(&root(), &memory.root(), 0, Listed::Names, keep).unwrap();
    for at in names {
        memory.remove(&root(), &memory.root(), name(&at)).unwrap();
    }
    assert_eq!(free(), at_start);
}

#[test]
fn links_are_bounded() {
    let memory = small(MemoryOptions { links_max: 3, ..MemoryOptions::default() });
    let node = file(&memory, b"a");
    let link = |at| memory.link(&root(), &node.handle, &memory.root(), name(at)).map(drop);
    assert_eq!([link(b"b"), link(b"c"), link(b"d")], [Ok(()), Ok(()), Err(Status::MLink)]);
    let mkdir = |at| memory.mkdir(&root(), &memory.root(), name(at), &SetAttr::default()).map(drop);
    assert_eq!([mkdir(b"e"), mkdir(b"f")], [Ok(()), Err(Status::MLink)]);
}

#[test]
fn every_change_has_its_own_ctime_even_when_the_clock_stands() {
    let clock = || Time { seconds: 7, nanoseconds: 999_999_999 };
    let memory = small(MemoryOptions { clock, ..MemoryOptions::default() });
    let node = file(&memory, b"a");
    let mut last = node.attr.ctime;
    for _ in 0..3 {
        let set = SetAttr { mtime: Some(SetTime::Now), ..SetAttr::default() };
        let change = memory.setattr(&root(), &node.handle, &set, None).unwrap();
        let ctime = change.after.unwrap().ctime;
        assert!(ctime > last, "{ctime:?} after {last:?}");
        last = ctime;
    }
}

#[test]
fn files_end_at_the_limit() {
    let memory = small(MemoryOptions { file_size_max: 10, ..MemoryOptions::default() });
    let node = file(&memory, b"a");
    let write = |at| memory.write(&root(), &node.handle, at, b"abc").map(|done| done.value);
    assert_eq!(
        [write(8), write(10), write(u64::MAX)],
        [Ok(2), Err(Status::FBig), Err(Status::FBig)]
    );
}
