//! A metadata server and its data servers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use comity_proto::nfs4::{Nfsstat4, StableHow4, Stateid4, Write4args, operation as op, share};
use comity_xdr::Opaque;

use super::four::{Four, Operation, operation};
use super::{Place, Running, comity};

/// The stripe unit in bytes.
pub const UNIT: u64 = 64 << 10;

/// Access of an open for reading and writing without a delegation.
pub const BOTH: u32 = share::READ | share::WRITE | share::WANT_NO_DELEG;

/// A metadata server and its two data servers.
pub struct World {
    pub place: Place,
    pub stores: [Running; 2],
    pub mds: Running,
}

impl World {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// A world whose metadata server has these further arguments.
    pub fn with(arguments: &[&str]) -> Self {
        let place = Place::new();
        let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let stores = ["a", "b"].map(|name| {
            fs::create_dir(place.path(name)).unwrap();
            store_of(&place, name, 0)
        });
        let config = place.write("config.toml", &config(&place, [stores[0].port, stores[1].port]));
        let mds = Running::start(place.serve(&["--config"]).arg(config).args(arguments));
        Self { place, stores, mds }
    }

    pub fn client(&self) -> Four {
        Four::connect(self.mds.port, 0, "client")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.place.data().join(name)
    }

    /// The content of the only file on each data server.
    pub fn stored(&self) -> [Vec<u8>; 2] {
        ["a", "b"].map(|name| {
            let mut files = fs::read_dir(self.place.path(name)).unwrap();
            let file = files.next().unwrap().unwrap();
            assert!(files.next().is_none());
            fs::read(file.path()).unwrap()
        })
    }
}

/// Starts the data server of a folder of this name.
pub fn store_of(place: &Place, name: &str, port: u16) -> Running {
    store_for("127.0.0.1", place, name, port)
}

/// Starts the data server of a folder of this name, for a metadata server at an address.
pub fn store_for(address: &str, place: &Place, name: &str, port: u16) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
    command.args(["--port", &port.to_string(), "--for", address]);
    command.arg("--placement-key").arg(place.path("key"));
    command.arg("--state-dir").arg(place.path(&format!("state-{name}")));
    Running::start(command.arg("--data-server").arg(place.path(name)))
}

/// The configuration of the metadata server, with the ports of its data servers.
pub fn config(place: &Place, ports: [u16; 2]) -> String {
    let (data, key) = (place.data(), place.path("key"));
    format!(
        "[[export]]\npath = {data:?}\noptions = [\"rw\", \"insecure\", \"no_root_squash\"]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n\n\
         [[placement]]\nexport = {data:?}\nkey = {key:?}\nstripe_unit_bytes = {UNIT}\n\
         threshold = {{ read_file_bytes = 100000, write_io_bytes = 4096 }}\n\
         data_servers = [\n  {{ name = \"a\", address = \"127.0.0.1:{}\" }},\n  \
         {{ name = \"b\", address = \"127.0.0.1:{}\" }},\n]\n",
        ports[0], ports[1]
    )
}

/// An operation on a handle.
pub fn on(handle: &[u8], what: Operation) -> Vec<Operation> {
    vec![operation(op::PUTFH, &Opaque::<128>(handle)), what]
}

/// Writes data by a handle, to stable storage.
pub fn write(
    store: &mut Four,
    handle: &[u8],
    stateid: Stateid4,
    (offset, data): (u64, &[u8]),
) -> Result<(), Nfsstat4> {
    let args = Write4args { stateid, offset, stable: StableHow4::FileSync, data: Opaque(data) };
    store.perform(on(handle, operation(op::WRITE, &args))).map(drop)
}

/// Bytes of which no two stripe units are the same.
pub fn text(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at / UNIT * 31) as u8).collect()
}
