//! Extended attributes on a file system without them.

use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_vfs::layers::{Faults, Layer, Verb, When};
use comity_vfs::{Fs, Status};

use crate::script::Script;
use crate::world::{World, export, furnish, memory};

#[test]
fn support_of_extended_attributes_is_that_of_the_file_system() {
    for (status, supported) in [(Status::NotSupp, 0), (Status::NoXattr, 1), (Status::Acces, 1)] {
        let fs = memory();
        furnish(&*fs);
        let faults = Faults::new(1).fail(Verb::Getxattr, status, When::Always);
        let fs: Arc<dyn Fs> = Arc::new(Layer::new(fs, faults));
        let exports = vec![export(1, "/pub", &fs, Client::Everybody)];
        let world = World::of(Plan::new(HandleKey::new([7; 16]), exports));
        let mut script = Script::new(&world);
        assert!(script.line("MINOR 2").is_empty());
        for name in ["file", "inner"] {
            let said = script
                .line(&format!("PUTROOTFH; LOOKUP pub; LOOKUP {name}; GETATTR xattr_support"));
            let expected = format!("GETATTR OK xattr_support={supported}");
            assert_eq!(said.last(), Some(&expected), "{name} where {status:?}");
        }
    }
}
