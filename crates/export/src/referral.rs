//! The servers that have the files of an export instead of this one: the option `refer`.

use std::ffi::OsStr;
use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::limits::{LOCATION_SERVERS_MAX, LOCATIONS_MAX, NAME_BYTES_MAX};
use crate::path::{Escaped, normal};

/// The places where the files of an export are served, in the order of preference (RFC 7530, 8.4;
/// RFC 8881, 11.16). There is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Referral(Arc<[ServedAt]>);

/// Servers that serve the same files at the same path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedAt {
    path: PathBuf,
    servers: Vec<Box<str>>,
}

impl Referral {
    /// Parses `PATH@HOST[+HOST][:PATH@HOST[+HOST]]`, as in exports(5). An IPv6 address is in
    /// brackets.
    ///
    /// # Errors
    /// The mistake in words.
    pub(crate) fn parse(value: &str) -> Result<Self, String> {
        let locations = parts(value, ':');
        if locations.len() > LOCATIONS_MAX {
            return Err(format!("over {LOCATIONS_MAX} locations: clients look at no more"));
        }
        let locations: Result<Vec<_>, _> = locations.into_iter().map(ServedAt::parse).collect();
        Ok(Self(locations?.into()))
    }

    /// Refers to one server, which has the files at the same path.
    pub(crate) fn to(path: &Path, host: &str) -> Self {
        Self(Arc::new([ServedAt { path: path.to_owned(), servers: vec![host.into()] }]))
    }

    /// The locations.
    #[must_use]
    pub fn locations(&self) -> &[ServedAt] {
        &self.0
    }
}

impl ServedAt {
    fn parse(value: &str) -> Result<Self, String> {
        let (path, servers) = value.rsplit_once('@').ok_or_else(|| {
            format!("{value:?} names no server: expected PATH@HOST, as in /srv/data@b.example.org")
        })?;
        if path.contains(['[', ']']) {
            return Err(format!("{path:?}: brackets are for IPv6 addresses"));
        }
        let servers = parts(servers, '+');
        if servers.len() > LOCATION_SERVERS_MAX {
            return Err(format!("over {LOCATION_SERVERS_MAX} servers: clients look at no more"));
        }
        let servers: Result<Vec<_>, _> = servers.into_iter().map(server).collect();
        Ok(Self { path: normal(OsStr::new(path))?, servers: servers? })
    }

    /// The path of the files on these servers, as their clients name it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names or addresses of the servers; an IPv6 address is without brackets.
    pub fn servers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.servers.iter().map(|server| &**server)
    }
}

/// Splits a value where `separator` is outside of brackets.
fn parts(value: &str, separator: char) -> Vec<&str> {
    let mut is_inside = false;
    let is_end = |letter: char| {
        is_inside = letter == '[' || is_inside && letter != ']';
        letter == separator && !is_inside
    };
    value.split(is_end).collect()
}

/// Parses the name or address of a server; an IPv6 address is in brackets.
pub(crate) fn server(text: &str) -> Result<Box<str>, String> {
    let address = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(address) = address {
        let parsed: Result<Ipv6Addr, _> = address.parse();
        return parsed
            .map(|parsed| parsed.to_string().into())
            .map_err(|_| format!("{text} is no IPv6 address"));
    }
    if !is_plain_name(text) {
        return Err(format!("{text:?} is no name or address of a server"));
    }
    Ok(text.into())
}

/// Returns whether a text is a name of letters, digits, '.', '-' and '_', as those of hosts are.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Formats it as the value of the option.
impl fmt::Display for Referral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, location)| {
            f.write_str(if at > 0 { ":" } else { "" })?;
            location.fmt(f)
        })
    }
}

impl fmt::Display for ServedAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Escaped(&self.path).fmt(f)?;
        self.servers.iter().enumerate().try_for_each(|(at, server)| {
            f.write_str(if at > 0 { "+" } else { "@" })?;
            if server.contains(':') { write!(f, "[{server}]") } else { f.write_str(server) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_referral_is_shown_as_it_is_written() {
        for value in [
            "/x@b",
            "/x@b.example.org+192.0.2.7",
            "/x@[2001:db8::7]+b:/y/z@c",
            "/@host",
            "/odd@name@b",
        ] {
            let parsed = Referral::parse(value).unwrap();
            assert_eq!(parsed.to_string(), value);
        }
    }

    #[test]
    fn a_bracket_in_a_path_does_not_hide_the_location_behind_it() {
        let error = Referral::parse("/x[1@b:/y@c").unwrap_err();
        assert!(error.ends_with("brackets are for IPv6 addresses"), "{error}");
    }

    #[test]
    fn the_parts_of_a_referral_are_told_apart() {
        let parsed = Referral::parse("/x@[2001:db8::7]+b:/y/@c").unwrap();
        let told: Vec<(&Path, Vec<&str>)> =
            parsed.locations().iter().map(|one| (one.path(), one.servers().collect())).collect();
        let expected = [(Path::new("/x"), vec!["2001:db8::7", "b"]), (Path::new("/y"), vec!["c"])];
        assert_eq!(told, expected);
    }

    #[test]
    fn mistakes_are_named() {
        for (value, what) in [
            ("/x", "names no server"),
            ("x@b", "not absolute"),
            ("/x/../y@b", ".."),
            ("/x@", "no name or address"),
            ("/x@b+", "no name or address"),
            ("/x@b:", "names no server"),
            ("/x@2001:db8::7", "names no server"),
            ("/x@[b]", "no IPv6 address"),
            ("/x@b c", "no name or address"),
        ] {
            let said = Referral::parse(value).unwrap_err();
            assert!(said.contains(what), "{value}: {said}");
        }
    }

    #[test]
    fn no_more_locations_and_servers_are_taken_than_clients_look_at() {
        let locations = |count| vec!["/x@b"; count].join(":");
        assert!(Referral::parse(&locations(LOCATIONS_MAX)).is_ok());
        assert!(Referral::parse(&locations(LOCATIONS_MAX + 1)).unwrap_err().contains("over"));
        let servers = |count| format!("/x@{}", vec!["b"; count].join("+"));
        assert!(Referral::parse(&servers(LOCATION_SERVERS_MAX)).is_ok());
        assert!(Referral::parse(&servers(LOCATION_SERVERS_MAX + 1)).unwrap_err().contains("over"));
    }
}
