//! A metadata server whose files are mirrored on plain servers of NFSv3.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use comity_proto::nfs4::flexible_files::{
    DeviceError4, FfDeviceAddr4, FfIoerr4, FfLayout4, FfLayoutreturn4,
};
use comity_proto::nfs4::{
    Bitmap4, Getdeviceinfo4args, Getdeviceinfo4resok, Layoutget4resok, Layoutiomode4,
    Layoutreturn4, Layoutreturn4args, LayoutreturnFile4, Nfsstat4, Stateid4, layout_type,
    operation as op,
};
use comity_xdr::{Counted, Decoder, Opaque, encoded};

use super::four::{Four, Opened, operation, result, skip};
use super::placed::{ask_layout, on};
use super::raw::{NFS, Raw, number, opaque};
use super::{Place, Running, comity};

/// The names of the plain servers.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// A metadata server and plain servers.
pub struct Mirrored {
    pub place: Place,
    pub plain: Vec<Option<Running>>,
    pub ports: Vec<u16>,
    pub mds: Running,
}

/// A mirror in a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirror {
    pub device: [u8; 16],
    pub handle: Vec<u8>,
    pub uid: u32,
    pub gid: u32,
}

/// A flexible files layout.
#[derive(Debug, Clone)]
pub struct FlexLayout {
    pub stateid: Stateid4,
    /// The mirrors; clients read from the first one.
    pub mirrors: Vec<Mirror>,
}

impl Mirrored {
    pub fn new() -> Self {
        Self::with(2)
    }

    /// The same with this number of plain servers, of which each file is on two.
    pub fn with(servers: usize) -> Self {
        let place = Place::new();
        let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let start = |name: &&str| {
            fs::create_dir(place.path(name)).unwrap();
            plain(&place, name, 0)
        };
        let plain: Vec<Running> = NAMES[..servers].iter().map(start).collect();
        let ports: Vec<u16> = plain.iter().map(|it| it.port).collect();
        let config = place.write("config.toml", &config(&place, &ports));
        let mds = Running::start(place.serve(&["--config"]).arg(config));
        Self { place, plain: plain.into_iter().map(Some).collect(), ports, mds }
    }

    /// Starts a third plain server, which the configuration does not name.
    pub fn spare(place: &Place) -> Running {
        fs::create_dir(place.path(NAMES[2])).unwrap();
        plain(place, NAMES[2], 0)
    }

    /// Kills a plain server.
    pub fn lose(&mut self, at: usize) {
        self.plain[at].take().unwrap().kill();
    }

    /// Starts a plain server that was killed.
    pub fn restart(&mut self, at: usize) {
        self.plain[at] = Some(plain(&self.place, NAMES[at], self.ports[at]));
    }

    /// The content of the only file on a plain server.
    pub fn stored(&self, at: usize) -> Vec<u8> {
        let mut files = fs::read_dir(self.place.path(NAMES[at])).unwrap();
        let file = files.next().unwrap().unwrap();
        assert!(files.next().is_none());
        fs::read(file.path()).unwrap()
    }

    /// The number of the plain server of a device (GETDEVICEINFO).
    pub fn server_of(&self, client: &mut Four, device: [u8; 16]) -> usize {
        let args = Getdeviceinfo4args {
            device_id: device,
            layout_type: layout_type::FLEX_FILES,
            maxcount: 4096,
            notify_types: Bitmap4::EMPTY,
        };
        let results = client.perform(vec![operation(op::GETDEVICEINFO, &args)]).unwrap();
        let got: Getdeviceinfo4resok<'_> = result(&mut Decoder::new(&results));
        let device: FfDeviceAddr4<'_> = Decoder::whole(got.device_addr.body.0).unwrap();
        let version = device.versions.0[0];
        assert_eq!((version.version, version.tightly_coupled), (3, false));
        let text = std::str::from_utf8(device.netaddrs.0[0].addr.0).unwrap();
        let port = comity_proto::portmap::universal_port(text).unwrap();
        self.ports.iter().position(|known| *known == port).unwrap()
    }
}

/// Starts a plain server of the folder of this name.
fn plain(place: &Place, name: &str, port: u16) -> Running {
    let folder = place.path(name);
    let line = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", folder.display());
    let exports = place.write(&format!("exports-{name}"), &line);
    let mut command = comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--vers", "3"]);
    command.args(["--port", &port.to_string(), "--exports"]).arg(exports);
    Running::start(command.arg("--state-dir").arg(place.path(&format!("state-{name}"))))
}

/// The configuration of the metadata server.
fn config(place: &Place, ports: &[u16]) -> String {
    let server = |(name, port): (&str, &u16)| {
        let path = place.path(name);
        format!("  {{ name = \"{name}\", address = \"127.0.0.1:{port}\", path = {path:?} }},\n")
    };
    let servers: String = NAMES.into_iter().zip(ports).map(server).collect();
    let (data, key) = (place.data(), place.path("key"));
    format!(
        "[[export]]\npath = {data:?}\noptions = [\"rw\", \"insecure\", \"no_root_squash\"]\n\
         clients = [{{ client = \"127.0.0.1\" }}]\n\n\
         [[placement]]\nexport = {data:?}\nkey = {key:?}\nlayout = \"flexible-files\"\n\
         data_servers = [\n{servers}]\n"
    )
}

/// LAYOUTGET of a whole file.
pub fn flex_layout(
    client: &mut Four,
    file: &Opened,
    iomode: Layoutiomode4,
) -> Result<FlexLayout, Nfsstat4> {
    let results = ask_layout(client, file, (layout_type::FLEX_FILES, iomode))?;
    let mut results = Decoder::new(&results);
    skip(&mut results);
    let got: Layoutget4resok<'_> = result(&mut results);
    let content = got.layout.0[0].content;
    assert_eq!(content.layout_type, layout_type::FLEX_FILES);
    let body: FfLayout4<'_> = Decoder::whole(content.body.0).unwrap();
    let id = |text: &[u8]| std::str::from_utf8(text).unwrap().parse().unwrap();
    let servers = body.mirrors.0.iter().map(|mirror| &mirror.data_servers.0[0]);
    assert!(servers.clone().is_sorted_by(|one, next| one.efficiency > next.efficiency));
    let mirrors = servers.map(|it| Mirror {
        device: it.deviceid,
        handle: it.fh_vers.0[0].0.to_vec(),
        uid: id(it.user.0),
        gid: id(it.group.0),
    });
    Ok(FlexLayout { stateid: got.stateid, mirrors: mirrors.collect() })
}

/// An error at a data server, as LAYOUTERROR and LAYOUTRETURN report it.
pub fn io_error(stateid: Stateid4, device: [u8; 16], status: Nfsstat4, operation: u32) -> FfIoerr4 {
    let error = DeviceError4 { deviceid: device, status: status as u32, operation };
    FfIoerr4 { offset: 0, length: u64::MAX, stateid, errors: Counted(vec![error]) }
}

/// Sends a LAYOUTERROR.
pub fn report(client: &mut Four, file: &Opened, error: &FfIoerr4) -> Result<(), Nfsstat4> {
    client.perform(on(&file.handle, operation(op::LAYOUTERROR, error))).map(drop)
}

/// LAYOUTRETURN of a whole layout with the errors that the client has met.
pub fn give_back_with(
    client: &mut Four,
    file: &Opened,
    stateid: Stateid4,
    errors: Vec<FfIoerr4>,
) -> Result<(), Nfsstat4> {
    let iostats_report = Counted(Vec::new());
    let body = encoded(&FfLayoutreturn4 { ioerr_report: Counted(errors), iostats_report });
    give_back_body(client, file, stateid, &body)
}

/// The same with this body, which has the errors.
pub fn give_back_body(
    client: &mut Four,
    file: &Opened,
    stateid: Stateid4,
    body: &[u8],
) -> Result<(), Nfsstat4> {
    let (offset, length) = (0, u64::MAX);
    let returned = LayoutreturnFile4 { offset, length, stateid, body: Opaque(body) };
    let args = Layoutreturn4args {
        reclaim: false,
        layout_type: layout_type::FLEX_FILES,
        iomode: Layoutiomode4::Any,
        layoutreturn: Layoutreturn4::File(returned),
    };
    client.perform(on(&file.handle, operation(op::LAYOUTRETURN, &args))).map(drop)
}

/// A stable WRITE of NFSv3 by this user and its group; returns the status of a refusal.
pub fn write3(port: u16, id: u32, handle: &[u8], data: &[u8]) -> Result<(), u32> {
    const WRITE: u32 = 7;
    const FILE_SYNC: u32 = 2;
    let mut arguments = Vec::new();
    opaque(&mut arguments, handle);
    arguments.extend([0; 8]);
    number(&mut arguments, data.len() as u32);
    number(&mut arguments, FILE_SYNC);
    opaque(&mut arguments, data);
    let results = Raw::connect(port, id).call(NFS, WRITE, &arguments);
    match u32::from_be_bytes(results[..4].try_into().unwrap()) {
        0 => Ok(()),
        status => Err(status),
    }
}
