//! The sets of data servers that clients know as devices.

use std::net::SocketAddr;
use std::sync::Arc;

use comity_vfs::DeviceId;
use quick_cache::sync::Cache;

use crate::PlacementKey;
use crate::data_server::DataServer;
use crate::limits::DEVICES_MAX;

/// The sets of data servers on which files of a placement lie that clients may use directly. Files
/// from before the placement had its current data servers lie on other sets than new ones.
pub(crate) struct Devices {
    key: PlacementKey,
    servers: Vec<(Box<str>, SocketAddr)>,
    /// The addresses of the sets of which a client may have the id.
    known: Arc<Cache<DeviceId, Vec<SocketAddr>>>,
}

impl Devices {
    pub(crate) fn new(key: &PlacementKey, servers: &[DataServer]) -> Self {
        Self::over(key, servers, Arc::new(Cache::new(DEVICES_MAX)))
    }

    /// The devices of a placement with other data servers. Those that clients have the ids of stay
    /// known.
    pub(crate) fn with(&self, servers: &[DataServer]) -> Self {
        Self::over(&self.key, servers, Arc::clone(&self.known))
    }

    fn over(
        key: &PlacementKey,
        servers: &[DataServer],
        known: Arc<Cache<DeviceId, Vec<SocketAddr>>>,
    ) -> Self {
        let named = servers.iter().map(|server| (server.name.clone(), server.address)).collect();
        let devices = Self { key: key.clone(), servers: named, known };
        let names = |is_meant: fn(&&DataServer) -> bool| -> Vec<Box<str>> {
            servers.iter().filter(is_meant).map(|server| server.name.clone()).collect()
        };
        // A client may have the ids of these from before a restart.
        devices.of(&names(|_| true));
        devices.of(&names(|server| !server.is_draining));
        devices
    }

    /// Returns the device of a file on these data servers; `None` if the configuration does not
    /// name all of them.
    pub(crate) fn of(&self, names: &[Box<str>]) -> Option<DeviceId> {
        let find = |name| self.servers.iter().find(|(known, _)| known == name);
        let servers: Vec<_> = names.iter().map(find).collect::<Option<_>>()?;
        let id = self.id(&servers);
        if self.known.get(&id).is_none() {
            self.known.insert(id, servers.iter().map(|(_, address)| *address).collect());
        }
        Some(id)
    }

    /// Returns the addresses of the data servers of a device. A device of old files is unknown
    /// after a restart until a layout names it.
    pub(crate) fn addresses(&self, id: &DeviceId) -> Option<Vec<SocketAddr>> {
        self.known.get(id)
    }

    /// The id depends on the names and the addresses: other servers or addresses have another id.
    fn id(&self, servers: &[&(Box<str>, SocketAddr)]) -> DeviceId {
        let texts: Vec<String> =
            servers.iter().map(|(name, address)| format!("{name} {address}")).collect();
        let parts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        self.key.mac(b"device", &parts)
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Fs, Handle, LinkState, Result, Status};

    use super::*;
    use crate::ReachFiles;

    struct Unreached;

    impl ReachFiles for Unreached {
        fn reach(&self) -> Result<Arc<dyn Fs>> {
            Err(Status::Delay)
        }

        fn server_handle(&self, _: &Handle) -> Result<Box<[u8]>> {
            Err(Status::Stale)
        }

        fn state(&self) -> LinkState {
            let since = std::time::Instant::now();
            LinkState { is_up: false, since, last_error: None, space: None }
        }
    }

    fn server(name: &str, is_draining: bool) -> DataServer {
        let address = ([192, 0, 2, name.len() as u8], 2049).into();
        DataServer {
            name: name.into(),
            address,
            path: None,
            is_draining,
            files: Arc::new(Unreached),
        }
    }

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn clients_may_use_files_on_each_set_of_known_servers() {
        let devices = Devices::new(
            &PlacementKey::new([7; 16]),
            &[server("a", false), server("bb", true), server("ccc", false)],
        );
        let addresses = |of: &[&str]| devices.addresses(&devices.of(&names(of))?);
        let all = addresses(&["a", "bb", "ccc"]).unwrap();
        assert_eq!(addresses(&["ccc", "a"]), Some(vec![all[2], all[0]]));
        assert_eq!(addresses(&["bb"]), Some(vec![all[1]]));
        assert_eq!(addresses(&["a", "dddd"]), None);
        let ids = [["a", "bb"], ["bb", "a"]].map(|of| devices.of(&names(&of)));
        assert_ne!(ids[0], ids[1], "the order of the stripes belongs to the device");
    }

    #[test]
    fn a_device_stays_known_when_its_data_servers_are_taken_out() {
        let key = PlacementKey::new([7; 16]);
        let before = Devices::new(&key, &[server("a", false), server("bb", true)]);
        let id = before.of(&names(&["bb"])).unwrap();
        let after = before.with(&[server("a", false)]);
        assert_eq!(after.of(&names(&["bb"])), None);
        assert_eq!(after.addresses(&id), before.addresses(&id));
        assert!(after.addresses(&id).is_some());
    }

    #[test]
    fn the_devices_of_new_files_and_of_all_servers_are_known_after_a_restart() {
        let key = PlacementKey::new([7; 16]);
        let start =
            |is_draining| Devices::new(&key, &[server("a", false), server("bb", is_draining)]);
        let ids = [&["a"][..], &["a", "bb"]].map(|of| start(false).of(&names(of)).unwrap());
        assert!(ids.iter().all(|id| start(true).addresses(id).is_some()));
    }
}
