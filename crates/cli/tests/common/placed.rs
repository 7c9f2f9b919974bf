//! A metadata server and its data servers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use comity_proto::nfs4::files_layout::{FileLayout4, FileLayoutDsAddr4, MultipathList4};
use comity_proto::nfs4::{
    Bitmap4, Getdeviceinfo4args, Getdeviceinfo4resok, Layout4, LayoutContent4, Layoutcommit4args,
    Layoutcommit4resok, Layoutget4args, Layoutget4resok, Layoutiomode4, Layoutreturn4,
    Layoutreturn4args, Layoutreturn4resok, LayoutreturnFile4, Nfsstat4, StableHow4, Stateid4,
    Write4args, layout_type, operation as op, share,
};
use comity_xdr::{Decoder, Opaque};
use serde_json::Value;

use super::four::{Four, Opened, Operation, operation, result, skip};
use super::{Place, Running, Said, comity, run};

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
    store_with((address, &place.path("key")), place, name, port)
}

/// The same with another key.
pub fn store_with((address, key): (&str, &Path), place: &Place, name: &str, port: u16) -> Running {
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register"]);
    command.args(["--port", &port.to_string(), "--for", address]);
    command.arg("--placement-key").arg(key);
    command.arg("--state-dir").arg(place.path(&format!("state-{name}")));
    Running::start(command.arg("--data-server").arg(place.path(name)))
}

/// The configuration of the metadata server, with the ports of its data servers.
pub fn config(place: &Place, ports: [u16; 2]) -> String {
    let server =
        |(name, port)| format!("  {{ name = \"{name}\", address = \"127.0.0.1:{port}\" }},\n");
    config_with(place, &["a", "b"].into_iter().zip(ports).map(server).collect::<String>())
}

/// The configuration of the metadata server, with the entries of its data servers.
pub fn config_with(place: &Place, servers: &str) -> String {
    let (data, key) = (place.data(), place.path("key"));
    format!(
        "[[export]]\npath = {data:?}\noptions = [\"rw\", \"insecure\", \"no_root_squash\"]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n\n\
         [[placement]]\nexport = {data:?}\nkey = {key:?}\nstripe_unit_bytes = {UNIT}\n\
         threshold = {{ read_file_bytes = 100000, write_io_bytes = 4096 }}\n\
         data_servers = [\n{servers}]\n"
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

/// The layout of a file: its stateid, and the handle on each data server.
#[derive(Clone)]
pub struct Layout {
    pub stateid: Stateid4,
    pub device: [u8; 16],
    pub handles: Vec<Vec<u8>>,
}

/// Asks for a layout of a whole file, of this type; returns the results of LAYOUTGET.
pub fn ask_layout(
    client: &mut Four,
    file: &Opened,
    (layout_type, iomode): (u32, Layoutiomode4),
) -> Result<Vec<u8>, Nfsstat4> {
    let args = Layoutget4args {
        signal_layout_avail: false,
        layout_type,
        iomode,
        offset: 0,
        length: u64::MAX,
        minlength: 4096,
        stateid: file.stateid,
        maxcount: 4096,
    };
    client.perform(on(&file.handle, operation(op::LAYOUTGET, &args)))
}

/// LAYOUTGET of a whole file.
pub fn layout(client: &mut Four, file: &Opened, iomode: Layoutiomode4) -> Result<Layout, Nfsstat4> {
    let results = ask_layout(client, file, (layout_type::FILES, iomode))?;
    let mut results = Decoder::new(&results);
    skip(&mut results);
    let got: Layoutget4resok<'_> = result(&mut results);
    let Layout4 { offset, length, content, .. } = got.layout.0[0];
    assert_eq!((offset, length, got.return_on_close), (0, u64::MAX, true));
    let body: FileLayout4<'_> = Decoder::new(content.body.0).value().unwrap();
    assert_eq!((u64::from(body.util), body.first_stripe_index, body.pattern_offset), (UNIT, 0, 0));
    let handles = body.fh_list.0.iter().map(|handle| handle.0.to_vec()).collect();
    Ok(Layout { stateid: got.stateid, device: body.deviceid, handles })
}

/// Runs `comity placement` for the metadata server of a place.
pub fn placement(place: &Place, arguments: &[&str]) -> Said {
    run(comity().arg("placement").args(arguments).arg("--state-dir").arg(place.state()))
}

/// The data servers that `comity placement status` shows.
pub fn shown(place: &Place) -> Vec<Value> {
    let said = placement(place, &["status", "--json"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(answer["placements"][0]["export"], place.data().to_str().unwrap());
    answer["placements"][0]["data_servers"].as_array().unwrap().clone()
}

/// The ports of the data servers of a device (GETDEVICEINFO).
pub fn ports(client: &mut Four, device: [u8; 16]) -> Vec<u16> {
    let args = Getdeviceinfo4args {
        device_id: device,
        layout_type: layout_type::FILES,
        maxcount: 4096,
        notify_types: Bitmap4::EMPTY,
    };
    let results = client.perform(vec![operation(op::GETDEVICEINFO, &args)]).unwrap();
    let got: Getdeviceinfo4resok<'_> = result(&mut Decoder::new(&results));
    let device: FileLayoutDsAddr4<'_> = Decoder::new(got.device_addr.body.0).value().unwrap();
    let port = |list: &MultipathList4<'_>| {
        let text = std::str::from_utf8(list.0[0].addr.0).unwrap();
        comity_proto::portmap::universal_port(text).unwrap()
    };
    let ports: Vec<u16> = device.multipath_ds_list.0.iter().map(port).collect();
    assert!(device.stripe_indices.0.iter().copied().eq(0..ports.len() as u32));
    ports
}

/// LAYOUTCOMMIT of a file that was written up to `end`; returns the new size.
pub fn commit(client: &mut Four, file: &Opened, layout: &Layout, end: u64) -> Option<u64> {
    try_commit(client, file, layout, end).unwrap()
}

/// The same, or the error.
pub fn try_commit(
    client: &mut Four,
    file: &Opened,
    layout: &Layout,
    end: u64,
) -> Result<Option<u64>, Nfsstat4> {
    let layoutupdate = LayoutContent4 { layout_type: layout_type::FILES, body: Opaque(&[]) };
    let args = Layoutcommit4args {
        offset: 0,
        length: u64::MAX,
        reclaim: false,
        stateid: layout.stateid,
        last_write_offset: Some(end - 1),
        time_modify: None,
        layoutupdate,
    };
    let results = client.perform(on(&file.handle, operation(op::LAYOUTCOMMIT, &args)))?;
    let mut results = Decoder::new(&results);
    skip(&mut results);
    Ok(result::<Layoutcommit4resok>(&mut results).newsize)
}

/// LAYOUTRETURN of a whole layout.
pub fn give_back(client: &mut Four, file: &Opened, layout: &Layout) {
    let args = Layoutreturn4args {
        reclaim: false,
        layout_type: layout_type::FILES,
        iomode: Layoutiomode4::Any,
        layoutreturn: Layoutreturn4::File(LayoutreturnFile4 {
            offset: 0,
            length: u64::MAX,
            stateid: layout.stateid,
            body: Opaque(&[]),
        }),
    };
    let results = client.perform(on(&file.handle, operation(op::LAYOUTRETURN, &args))).unwrap();
    let mut results = Decoder::new(&results);
    skip(&mut results);
    assert_eq!(result::<Layoutreturn4resok>(&mut results).stateid, None);
}

/// Bytes of which no two stripe units are the same.
pub fn text(length: u64) -> Vec<u8> {
    (0..length).map(|at| (at / 7 + at / UNIT * 31) as u8).collect()
}
