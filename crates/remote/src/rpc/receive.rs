use std::io::{ErrorKind, Read};

use anyhow::{Error, Result, anyhow, ensure};

use crate::limits::{REPLY_BYTES_MAX, SILENCE_SECONDS_MAX};

/// Reads the next record, without its mark.
///
/// # Errors
/// The server closed the connection or is silent; or the record has several fragments or is too
/// long.
pub fn receive(stream: &mut (impl Read + ?Sized)) -> Result<Vec<u8>> {
    let mut mark = [0; 4];
    stream.read_exact(&mut mark).map_err(told)?;
    let mark = u32::from_be_bytes(mark);
    let length = (mark & !(1 << 31)) as usize;
    ensure!(mark >> 31 == 1 && length <= REPLY_BYTES_MAX, "record mark {mark:#x}");
    let mut record = vec![0; length];
    stream.read_exact(&mut record).map_err(told)?;
    Ok(record)
}

/// Makes an error of a connection that ended or timed out.
pub(super) fn told(error: std::io::Error) -> Error {
    use ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    match error.kind() {
        UnexpectedEof | BrokenPipe | ConnectionAborted | ConnectionReset => {
            anyhow!("the server closed the connection")
        }
        ErrorKind::WouldBlock => anyhow!("the server said nothing for {SILENCE_SECONDS_MAX} s"),
        _ => Error::new(error).context("the connection to the server"),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Returns the result of [`receive`] when a server sends these bytes and closes.
    fn sent(bytes: &[u8]) -> Result<Vec<u8>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut stream = TcpStream::connect(listener.local_addr()?)?;
        listener.accept()?.0.write_all(bytes)?;
        receive(&mut stream)
    }

    #[test]
    fn the_error_names_a_connection_that_the_server_closed() {
        assert_eq!(sent(&[0x80, 0, 0, 2, 7, 8]).unwrap(), [7, 8]);
        for cut in [&[][..], &[0x80, 0], &[0x80, 0, 0, 2, 7]] {
            let error = sent(cut).unwrap_err().to_string();
            assert_eq!(error, "the server closed the connection", "{cut:?}");
        }
    }

    #[test]
    fn a_record_of_several_fragments_or_too_many_bytes_is_refused() {
        assert!(sent(&[0, 0, 0, 2, 7, 8]).unwrap_err().to_string().contains("mark"));
        assert!(sent(&[0xff, 0xff, 0xff, 0xff]).unwrap_err().to_string().contains("mark"));
    }
}
