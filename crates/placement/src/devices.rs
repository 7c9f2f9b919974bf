//! The sets of data servers that clients know as devices.

use std::net::SocketAddr;

use comity_vfs::DeviceId;

use crate::PlacementKey;
use crate::data_server::DataServer;

/// The sets of data servers on which files of a placement lie that clients may use directly: all
/// data servers, and those that are not being drained.
pub(crate) struct Devices(Vec<Device>);

struct Device {
    id: DeviceId,
    names: Vec<Box<str>>,
    addresses: Vec<SocketAddr>,
}

impl Devices {
    pub(crate) fn new(key: &PlacementKey, servers: &[DataServer]) -> Self {
        let taking = servers.iter().filter(|server| !server.is_draining).collect();
        let mut devices = vec![Device::new(key, taking)];
        if servers.iter().any(|server| server.is_draining) {
            devices.push(Device::new(key, servers.iter().collect()));
        }
        Self(devices)
    }

    /// Returns the device of a file on these data servers; `None` if clients cannot use them.
    pub(crate) fn of(&self, servers: &[Box<str>]) -> Option<DeviceId> {
        self.0.iter().find(|device| device.names == servers).map(|device| device.id)
    }

    /// Returns the addresses of the data servers of a device.
    pub(crate) fn addresses(&self, id: &DeviceId) -> Option<Vec<SocketAddr>> {
        self.0.iter().find(|device| device.id == *id).map(|device| device.addresses.clone())
    }
}

impl Device {
    /// The id depends on the names and the addresses: other servers or addresses have another id.
    fn new(key: &PlacementKey, servers: Vec<&DataServer>) -> Self {
        let text = |server: &&DataServer| format!("{} {}", server.name, server.address);
        let texts: Vec<String> = servers.iter().map(text).collect();
        let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        Self {
            id: key.mac(b"device", &parts),
            names: servers.iter().map(|server| server.name.clone()).collect(),
            addresses: servers.iter().map(|server| server.address).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use comity_vfs::{Fs, LinkState, Result, Status};

    use super::*;
    use crate::ReachFiles;

    struct Unreached;

    impl ReachFiles for Unreached {
        fn reach(&self) -> Result<Arc<dyn Fs>> {
            Err(Status::Delay)
        }

        fn state(&self) -> LinkState {
            LinkState { is_up: false, since: std::time::Instant::now(), last_error: None }
        }
    }

    fn server(name: &str, is_draining: bool) -> DataServer {
        let address = ([192, 0, 2, name.len() as u8], 2049).into();
        DataServer { name: name.into(), address, is_draining, files: Arc::new(Unreached) }
    }

    #[test]
    fn clients_may_use_old_files_on_all_servers_and_new_ones_on_those_that_stay() {
        let key = PlacementKey::new([7; 16]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
        let devices = Devices::new(&key, &[server("a", false), server("bb", true)]);
        let count = |of: &[&str]| Some(devices.addresses(&devices.of(&names(of))?)?.len());
        assert_eq!((count(&["a", "bb"]), count(&["a"]), count(&["bb"])), (Some(2), Some(1), None));
        let later = Devices::new(&key, &[server("a", false)]);
        assert_eq!(later.of(&names(&["a"])), devices.of(&names(&["a"])), "the id stays");
        assert_eq!(later.of(&names(&["a", "bb"])), None);
    }
}
