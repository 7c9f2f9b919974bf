//! Opens the listening sockets.

use std::fs::DirEntry;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::sync::mpsc;
use std::thread;

use socket2::{Domain, Protocol, Socket, Type};

use crate::limits::{LISTEN_BACKLOG, OWNER_PATIENCE};

/// Why an address cannot be listened on, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {reason}")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// The reason, and the remedy.
    pub reason: String,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

/// Listens on an address. An address of IPv6 takes IPv6 only, except the unspecified one, which
/// takes IPv4 too. `remedy` is the advice if the port is taken, such as "choose another with
/// --port".
///
/// # Errors
/// [`ListenError`], with what to do about it.
pub fn listen(address: SocketAddr, remedy: &str) -> Result<TcpListener, ListenError> {
    open(address).map_err(|source| ListenError {
        address,
        reason: reason(address, remedy, &source),
        source,
    })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket =
        Socket::new(Domain::for_address(address), Type::STREAM.cloexec(), Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    // A restarted server need not wait for the connections of the previous one.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

fn reason(address: SocketAddr, remedy: &str, error: &io::Error) -> String {
    let port = address.port();
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let by = soon(move || owner_of_port(port))
                .map_or_else(String::new, |owner| format!(" by {owner}"));
            format!("port {port} is in use{by}; stop that or {remedy}")
        }
        io::ErrorKind::PermissionDenied if port < 1024 => {
            format!("ports below 1024 need root; {remedy}")
        }
        io::ErrorKind::AddrNotAvailable => {
            "no interface of this machine has that address".to_owned()
        }
        _ => error.to_string(),
    }
}

/// Does work that may hang, and gives it up after [`OWNER_PATIENCE`]: a look at a process whose
/// open files wait for a server that does not answer takes as long as that.
fn soon<T: Send + 'static>(work: impl FnOnce() -> Option<T> + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(OWNER_PATIENCE).ok().flatten()
}

/// Returns the process that listens on a TCP port, as far as /proc shows it.
fn owner_of_port(port: u16) -> Option<String> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .find_map(|table| listening_inode(&table, port))?;
    let wanted = format!("socket:[{inode}]");
    let numbered =
        |process: &DirEntry| process.file_name().as_bytes().iter().all(u8::is_ascii_digit);
    let processes = std::fs::read_dir("/proc").ok()?.flatten().filter(numbered);
    processes.filter(|process| holds(&process.path(), &wanted)).find_map(|process| {
        let name = std::fs::read_to_string(process.path().join("comm")).ok()?;
        Some(format!("{} (process {})", name.trim(), process.file_name().to_string_lossy()))
    })
}

/// Returns the inode of the listening socket of `port` in a table of /proc/net: the columns are
/// number, local address, remote address, state (0A: listening) and six more before the inode.
fn listening_inode(table: &str, port: u16) -> Option<String> {
    let suffix = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [_, local, _, state, ..] = columns[..] else { return None };
        let found = state == "0A" && local.ends_with(&suffix);
        if found { columns.get(9).map(|&inode| inode.to_owned()) } else { None }
    })
}

fn holds(process: &std::path::Path, wanted: &str) -> bool {
    let Ok(descriptors) = std::fs::read_dir(process.join("fd")) else { return false };
    descriptors
        .flatten()
        .filter_map(|descriptor| std::fs::read_link(descriptor.path()).ok())
        .any(|target| target.as_os_str() == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEB: &str = "choose another with --web";

    #[test]
    fn a_port_in_use_names_its_owner() {
        let first = listen("127.0.0.1:0".parse().unwrap(), WEB).unwrap();
        let error = listen(first.local_addr().unwrap(), WEB).unwrap_err();
        assert!(error.to_string().contains("in use by"), "{error}");
        assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");
        assert!(error.to_string().contains("choose another with --web"), "{error}");
    }

    #[test]
    fn a_look_at_processes_that_hangs_is_given_up() {
        assert_eq!(soon(|| Some(1)), Some(1));
        let (sender, receiver) = mpsc::channel::<()>();
        assert_eq!(soon(move || receiver.recv().ok()), None);
        drop(sender);
    }

    #[test]
    fn a_foreign_address_is_reported_as_such() {
        let error = listen("192.0.2.1:0".parse().unwrap(), WEB).unwrap_err();
        assert!(error.to_string().contains("no interface"), "{error}");
    }

    #[test]
    fn the_unspecified_address_takes_both_families() {
        let listener = listen("[::]:0".parse().unwrap(), WEB).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    }

    /// The head of /proc/net/tcp, and two sockets: one listens at port 2049, one is connected.
    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when
   0: 0100007F:0801 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1
   1: 0100007F:006F 0100007F:9C40 01 00000000:00000000 00:00000000 00000000 0 0 4712 1
   2: cut";

    #[test]
    fn the_socket_that_listens_is_found_in_the_table_of_the_kernel() {
        assert_eq!(listening_inode(TABLE, 2049).as_deref(), Some("4711"));
        assert_eq!(listening_inode(TABLE, 111), None, "a connected socket does not listen");
        assert_eq!(listening_inode(TABLE, 1), None, "port 1 is not the end of port 2049");
        let cut = TABLE.split(" 0 0 4711").next().unwrap();
        assert_eq!(listening_inode(cut, 2049), None);
        assert_eq!(listening_inode("", 2049), None);
    }

    #[test]
    fn a_port_that_needs_root_is_reported_with_the_option_for_another() {
        let denied = io::ErrorKind::PermissionDenied.into();
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        let low = reason(at(111), WEB, &denied);
        assert!(low.contains("need root") && low.contains(WEB), "{low}");
        assert_eq!(reason(at(2049), WEB, &denied), denied.to_string());
    }
}
