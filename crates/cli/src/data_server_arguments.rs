//! The arguments of a data server: `comity serve --data-server`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// The folder of a data server, and its metadata server.
#[derive(Debug, Args)]
pub(crate) struct DataServer {
    /// Serve this folder as a data server: the metadata server of --for keeps the data of its files
    /// here, and its clients read and write them by their layouts (parallel NFS); see the tables
    /// `placement` in comity.toml(5)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath,
          requires_all = ["metadata_server", "placement_key"],
          conflicts_with_all = ["dirs", "exports", "config", "from", "allow", "read_only"])]
    pub(crate) data_server: Option<PathBuf>,

    /// The metadata server of --data-server: an address or a host name
    #[arg(long = "for", value_name = "HOST", value_parser = host, requires = "data_server")]
    pub(crate) metadata_server: Option<String>,

    /// The file with the key that the metadata server and its data servers share
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "data_server")]
    pub(crate) placement_key: Option<PathBuf>,
}

/// Takes one host: everybody else would have root's rights to the folder.
fn host(text: &str) -> Result<String, String> {
    let is_named = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_named) {
        return Ok(text.to_owned());
    }
    Err("expected the address or the name of one host".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_server_has_one_metadata_server() {
        for good in ["192.0.2.1", "2001:db8::1", "mds.example.org"] {
            assert_eq!(host(good), Ok(good.to_owned()));
        }
        for bad in ["", "*", "192.0.2.0/24", "@group", "a b", "a(rw)"] {
            assert!(host(bad).is_err(), "{bad}");
        }
    }
}
