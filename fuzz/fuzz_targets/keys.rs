//! Keys in files: any text makes a key that is written and read again, or an error.
#![no_main]

use comity_keys::{KeyError, PrivateKey, PublicKey, Signature, Signer};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = PrivateKey::from_pkcs8(bytes).map(|key| private(&key));
    for read in [PublicKey::from_spki, PublicKey::from_certificate] {
        let _ = read(bytes).map(public);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = PublicKey::from_text(text).map(public);
    let _ = PublicKey::from_openssh(text).map(|(key, _)| public(key));
    let _ = PublicKey::from_keynote(text).map(|key| key.map(public));
    let _ = Signature::from_base64(text);
    if let Ok(key) = PrivateKey::from_text(text, None) {
        private(&key);
        assert_eq!(PublicKey::from_text(text), Err(KeyError::Private));
    }
});

fn public(key: PublicKey) {
    assert_eq!(PublicKey::from_raw(key.algorithm(), key.as_bytes()), Ok(key));
    assert_eq!(PublicKey::from_spki(&key.to_spki()), Ok(key));
    for text in [key.to_string(), key.to_keynote(), key.to_openssh(""), key.to_pem()] {
        assert_eq!(PublicKey::from_text(&text), Ok(key), "{text}");
    }
}

fn private(key: &PrivateKey) {
    let signature = key.sign(b"a message").expect("a key that was read signs");
    assert!(key.public_key().verify(b"a message", signature.as_bytes()));
    public(*key.public_key());
}
