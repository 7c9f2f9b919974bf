//! State of a volume from another server: any bytes are refused, or make state that ends with its
//! clients.
#![no_main]

use std::time::Duration;

use comity_fuzz::volume_bytes;
use comity_state::{Census, Engine, ExportedVolume, Recovered, Settings};
use libfuzzer_sys::fuzz_target;

const NOW: Duration = Duration::from_secs(1000);

fuzz_target!(|sections: &[u8]| {
    let engine = Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new());
    let Ok(volume) = ExportedVolume::from_bytes(&volume_bytes(sections)) else { return };
    if let Ok(clients) = engine.import_volume(NOW, &volume) {
        engine.tick(NOW + Duration::from_secs(1));
        clients.iter().for_each(|client| engine.evict(NOW, client));
        while engine.poll_effect().is_some() {}
    }
    assert!(!engine.has_effects(), "a refused volume has effects");
    // The first tick may offer a lock to an owner that is gone; the second one ends the offer.
    engine.tick(NOW + Duration::from_secs(70));
    engine.tick(NOW + Duration::from_secs(80));
    assert_eq!(engine.census(), Census::default());
});
