use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::net::TcpStream;
use std::ops::Range;

use crate::call_templates::{CallTemplates, Stamp};
use crate::limits::{PAYLOAD_COPIED_MAX, PIECES_MAX};

/// Calls to be sent on one connection: all calls that are due leave in one send.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    bytes: Vec<u8>,
    pieces: VecDeque<Piece>,
}

/// A range still to be sent.
#[derive(Debug)]
enum Piece {
    Calls(Range<usize>),
    Payload(Range<usize>),
}

impl SendQueue {
    /// Adds a call, and after it the script's payload.
    pub(crate) fn add(&mut self, script: &CallTemplates, template: usize, stamp: &Stamp) {
        let start = self.bytes.len();
        script.encode(template, stamp, &mut self.bytes);
        let large = script.payload.len() > PAYLOAD_COPIED_MAX;
        if !large {
            self.bytes.extend_from_slice(&script.payload);
        }
        self.extend(start..self.bytes.len());
        if large {
            self.pieces.push_back(Piece::Payload(0..script.payload.len()));
        }
    }

    fn extend(&mut self, range: Range<usize>) {
        match self.pieces.back_mut() {
            Some(Piece::Calls(last)) if last.end == range.start => last.end = range.end,
            _ => self.pieces.push_back(Piece::Calls(range)),
        }
    }

    /// Returns whether nothing is left to send.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Sends as much as the socket takes.
    pub(crate) fn flush(&mut self, mut stream: &TcpStream, payload: &[u8]) -> io::Result<()> {
        while !self.is_empty() {
            let mut slices = [IoSlice::new(&[]); PIECES_MAX];
            let mut count = 0;
            for (slice, piece) in slices.iter_mut().zip(&self.pieces) {
                *slice = IoSlice::new(match piece {
                    Piece::Calls(range) => &self.bytes[range.clone()],
                    Piece::Payload(range) => &payload[range.clone()],
                });
                count += 1;
            }
            match stream.write_vectored(&slices[..count]) {
                Ok(sent) => self.forget(sent),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.bytes.clear();
        Ok(())
    }

    fn forget(&mut self, mut sent: usize) {
        while let Some(Piece::Calls(range) | Piece::Payload(range)) = self.pieces.front_mut() {
            let step = sent.min(range.len());
            range.start += step;
            sent -= step;
            if range.start < range.end {
                return;
            }
            self.pieces.pop_front();
        }
    }
}
