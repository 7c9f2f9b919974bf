use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use comity_bench::fixture_tree::FixtureTree;
use rustix::event::epoll;
use rustix::fd::OwnedFd;

use super::wire::{REPLY_BYTES, REQUEST_BYTES, Request, mark, word};
use super::work::Work;

/// Replies are sent when they have at least this many bytes, or no request is left: the data of two
/// large replies are never in memory together.
const SEND_BYTES: usize = 256 * 1024;
/// Room for requests in bytes: one with 1 MiB of data, and some small ones.
const INBOX_BYTES: usize = (1 << 20) + (64 << 10);

/// Answers requests for the files of a tree until it is killed: one thread, one epoll set.
///
/// # Errors
/// If the tree is not as expected, or a connection sends a malformed request.
pub fn serve(layout: &FixtureTree, listener: TcpListener) -> Result<()> {
    let mut server = Server::new(layout, listener)?;
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        let spare = rustix::buffer::spare_capacity(&mut events);
        match epoll::wait(&server.epoll, spare, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).context("epoll_wait"),
        }
        for event in &events {
            server.turn(event.data.u64() as usize)?;
        }
    }
}

struct Server {
    listener: TcpListener,
    epoll: OwnedFd,
    work: Work,
    connections: Vec<Option<Connection>>,
}

/// The number that stands for the listener among the connections' numbers.
const LISTENER: u64 = u64::MAX;

impl Server {
    fn new(layout: &FixtureTree, listener: TcpListener) -> Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let data = epoll::EventData::new_u64(LISTENER);
        epoll::add(&epoll, &listener, data, epoll::EventFlags::IN)?;
        let work = Work::open(layout)?;
        Ok(Self { listener, epoll, work, connections: Vec::new() })
    }

    fn turn(&mut self, number: usize) -> Result<()> {
        if number as u64 == LISTENER {
            return self.accept();
        }
        let Some(place) = self.connections.get_mut(number) else { return Ok(()) };
        if let Some(connection) = place
            && !connection.turn(&mut self.work)?
        {
            *place = None;
        }
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        let (stream, _) = self.listener.accept()?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
        let data = epoll::EventData::new_u64(self.connections.len() as u64);
        epoll::add(&self.epoll, &stream, data, flags)?;
        self.connections.push(Some(Connection {
            stream,
            inbox: vec![0; INBOX_BYTES].into(),
            start: 0,
            end: 0,
            replies: Replies::default(),
        }));
        Ok(())
    }
}

struct Connection {
    stream: TcpStream,
    inbox: Box<[u8]>,
    start: usize,
    end: usize,
    replies: Replies,
}

impl Connection {
    /// Reads, answers and sends as much as possible; returns whether the connection stays open.
    fn turn(&mut self, work: &mut Work) -> Result<bool> {
        let mut drained = false;
        loop {
            if !self.flush()? {
                return Ok(true);
            }
            self.answer(work)?;
            if !self.replies.is_empty() {
                continue;
            }
            if drained {
                return Ok(true);
            }
            match self.receive() {
                Ok(0) => return Ok(false),
                Ok(_) => drained = self.end < INBOX_BYTES,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(_) => return Ok(false),
            }
        }
    }

    fn receive(&mut self) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 {
            self.inbox.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let got = self.stream.read(&mut self.inbox[self.end..])?;
        self.end += got;
        Ok(got)
    }

    /// Answers the complete requests that have arrived, until there is enough to send.
    fn answer(&mut self, work: &mut Work) -> Result<()> {
        while self.replies.length() < SEND_BYTES {
            let bytes = &self.inbox[self.start..self.end];
            let Some(length) = word(bytes, 0).map(|mark| 4 + (mark & !(1 << 31)) as usize) else {
                return Ok(());
            };
            let Some(record) = bytes.get(4..length) else { return Ok(()) };
            answer(record, work, &mut self.replies)?;
            self.start += length;
        }
        Ok(())
    }

    /// Sends replies; returns whether all are sent.
    fn flush(&mut self) -> Result<bool> {
        while !self.replies.is_empty() {
            match self.stream.write(self.replies.rest()) {
                Ok(sent) => self.replies.sent(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error).context("send"),
            }
        }
        Ok(true)
    }
}

fn answer(record: &[u8], work: &mut Work, replies: &mut Replies) -> Result<()> {
    let Some(request) = Request::parse(record) else { bail!("no request") };
    let data = &record[REQUEST_BYTES - 4..];
    let start = replies.length();
    replies.room(REPLY_BYTES);
    let (status, number) = match work.perform(&request, data, replies) {
        Ok(number) => (0, number),
        Err(errno) => (errno.raw_os_error() as u32, 0),
    };
    let length = replies.length() - start;
    let head = replies.head(start);
    head[0..4].copy_from_slice(&mark(length));
    head[4..8].copy_from_slice(&record[0..4]);
    head[8..12].copy_from_slice(&status.to_be_bytes());
    head[12..20].copy_from_slice(&number.to_be_bytes());
    Ok(())
}

/// Replies to be sent, in memory that is reused without being cleared.
#[derive(Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Replies {
    /// Returns the next `length` bytes, with old content.
    pub(super) fn room(&mut self, length: usize) -> &mut [u8] {
        let start = self.end;
        self.end += length;
        if self.bytes.len() < self.end {
            self.bytes.resize(self.end, 0);
        }
        &mut self.bytes[start..self.end]
    }

    /// Frees the unused part of the buffer.
    pub(super) fn shrink(&mut self, length: usize) {
        self.end -= length;
    }

    fn head(&mut self, start: usize) -> &mut [u8] {
        &mut self.bytes[start..start + REPLY_BYTES]
    }

    const fn length(&self) -> usize {
        self.end
    }

    const fn is_empty(&self) -> bool {
        self.start == self.end
    }

    fn rest(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    const fn sent(&mut self, bytes: usize) {
        self.start += bytes;
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }
}
