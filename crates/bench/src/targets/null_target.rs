use std::collections::{BTreeMap, HashMap};
use std::io::Result as IoResult;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use rustix::io::Errno;

use crate::suite::{
    Access, Content, Entry, FileId, FileKind, Files, LockKind, Metadata, Range, Target, TargetKind,
    TargetRecord, Wait,
};

/// A target that does nothing and returns right answers: the time of a run on it is the suite's own
/// cost.
#[derive(Debug)]
pub struct NullTarget {
    content: Arc<Content>,
    state: Arc<Mutex<State>>,
}

/// The objects and open files that the target must know to answer correctly.
#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Object>,
    open: HashMap<u64, String>,
    next: u64,
}

#[derive(Debug, Clone)]
struct Object {
    metadata: Metadata,
    link: String,
}

impl NullTarget {
    /// A target whose files have the content of the run's seed.
    #[must_use]
    pub fn new(content: Arc<Content>) -> Self {
        Self { content, state: Arc::default() }
    }
}

impl Target for NullTarget {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn kind(&self) -> TargetKind {
        TargetKind::Fake
    }

    fn record(&self) -> TargetRecord {
        TargetRecord {
            name: "idle".into(),
            kind: TargetKind::Fake,
            server: None,
            mount: None,
            durability: "none: it keeps no data".into(),
            sync_seconds: None,
            cache_reset: String::new(),
            settings: BTreeMap::new(),
        }
    }

    fn files(&self) -> Result<Box<dyn Files>> {
        let (content, state) = (Arc::clone(&self.content), Arc::clone(&self.state));
        Ok(Box::new(IdleFiles { content, state }))
    }
}

struct IdleFiles {
    content: Arc<Content>,
    state: Arc<Mutex<State>>,
}

impl IdleFiles {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, path: &str, kind: FileKind, link: &str) {
        let metadata = Metadata { kind, size: 0, user: 0 };
        let object = Object { metadata, link: link.to_owned() };
        self.with(|state| state.objects.insert(path.to_owned(), object));
    }

    fn take(&self, path: &str) -> IoResult<()> {
        self.with(|state| state.objects.remove(path)).map(drop).ok_or_else(|| Errno::NOENT.into())
    }
}

impl State {
    fn open(&mut self, path: &str) -> FileId {
        self.next += 1;
        self.open.insert(self.next, path.to_owned());
        FileId(self.next)
    }

    fn object(&mut self, file: FileId) -> IoResult<&mut Object> {
        let path = self.open.get(&file.0).ok_or(Errno::BADF)?;
        Ok(self.objects.get_mut(path).ok_or(Errno::STALE)?)
    }
}

impl Files for IdleFiles {
    fn make_directory(&mut self, path: &str) -> IoResult<()> {
        self.add(path, FileKind::Directory, "");
        Ok(())
    }

    fn remove_directory(&mut self, path: &str) -> IoResult<()> {
        self.take(path)
    }

    fn create(&mut self, path: &str) -> IoResult<FileId> {
        self.add(path, FileKind::File, "");
        Ok(self.with(|state| state.open(path)))
    }

    fn open(&mut self, path: &str, _: Access) -> IoResult<FileId> {
        self.with(|state| match state.objects.contains_key(path) {
            true => Ok(state.open(path)),
            false => Err(Errno::NOENT.into()),
        })
    }

    fn close(&mut self, file: FileId) -> IoResult<()> {
        self.with(|state| state.open.remove(&file.0)).map(drop).ok_or_else(|| Errno::BADF.into())
    }

    fn read(&mut self, file: FileId, offset: u64, buffer: &mut [u8]) -> IoResult<usize> {
        let (salt, size) = self.with(|state| {
            let size = state.object(file)?.metadata.size;
            IoResult::Ok((Content::salt(&state.open[&file.0]), size))
        })?;
        let length = size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        for (number, part) in buffer[..length].chunks_mut(1 << 20).enumerate() {
            let at = offset + ((number as u64) << 20);
            part.copy_from_slice(self.content.piece(salt, at, part.len()));
        }
        Ok(length)
    }

    fn write(&mut self, file: FileId, offset: u64, data: &[u8]) -> IoResult<usize> {
        self.with(|state| {
            let metadata = &mut state.object(file)?.metadata;
            metadata.size = metadata.size.max(offset + data.len() as u64);
            Ok(data.len())
        })
    }

    fn sync(&mut self, _: FileId) -> IoResult<()> {
        Ok(())
    }

    fn attributes(&mut self, file: FileId) -> IoResult<Metadata> {
        self.with(|state| Ok(state.object(file)?.metadata))
    }

    fn lookup(&mut self, path: &str) -> IoResult<Metadata> {
        self.with(|state| Ok(state.objects.get(path).ok_or(Errno::NOENT)?.metadata))
    }

    fn list(&mut self, path: &str, attributes: bool) -> IoResult<Vec<Entry>> {
        let top = if path == "." { String::new() } else { format!("{path}/") };
        self.with(|state| {
            let below = state.objects.range(top.clone()..);
            let below = below.take_while(|(name, _)| name.starts_with(&top));
            let entries = below.filter_map(|(name, object)| {
                let name = name.strip_prefix(&top).filter(|name| !name.contains('/'))?.to_owned();
                Some(Entry { name, metadata: attributes.then_some(object.metadata) })
            });
            Ok(entries.collect())
        })
    }

    fn make_link(&mut self, path: &str, to: &str) -> IoResult<()> {
        self.add(path, FileKind::Link, to);
        Ok(())
    }

    fn read_link(&mut self, path: &str) -> IoResult<String> {
        self.with(|state| Ok(state.objects.get(path).ok_or(Errno::NOENT)?.link.clone()))
    }

    fn remove(&mut self, path: &str) -> IoResult<()> {
        self.take(path)
    }

    fn set_owner(&mut self, path: &str, user: u32, _: u32) -> IoResult<()> {
        self.with(|state| {
            state.objects.get_mut(path).ok_or(Errno::NOENT)?.metadata.user = user;
            Ok(())
        })
    }

    fn lock(&mut self, _: FileId, _: LockKind, _: Range, _: Wait) -> IoResult<()> {
        Ok(())
    }
}
