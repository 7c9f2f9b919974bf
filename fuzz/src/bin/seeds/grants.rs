//! Seeds of the targets `assertion` and `keys`.

/// Texts that use each part of the language.
const ASSERTIONS: &[(&str, &str)] = &[
    (
        "chain",
        "Authorizer: \"POLICY\"\nLicensees: \"a\"\n\nAuthorizer: \"a\"\nLicensees: \"b\"\n\
         Conditions: object == \"id1\" || within ~= \"id1\" -> \"rw\";\n",
    ),
    (
        "policy",
        "KeyNote-Version: 2\nLocal-Constants: A=\"a\" # one\n B=\"b\"\nAuthorizer: \"POLICY\"\n\
         Licensees: (A && B) || 2-of(A, \"c\", $kind)\nConditions: kind ~= \"^(x|y)+[[:digit:]]$\" \
         && _0 == \"1\" -> { now < \"2027\" -> \"r\" . \"w\"; !(_1 == \"x\") -> _MAX_TRUST; };\n\
         Comment: two\n lines\n",
    ),
    (
        "numbers",
        "Authorizer: \"POLICY\"\nConditions: @size / 2 * 3 % 5 ^ 2 - -1 >= 7 && &size < 1.5 \
         || &size + 0.25 > 1.5; 1/0 == 1; @kind == @within -> \"x\";\n",
    ),
    (
        "strings",
        "Authorizer: \"PO\\114ICY\"\nConditions: \"a\\n\\\n  b\" < $(\"ob\" . \"ject\") . kind \
         && object != \"\\\"\" && false || true -> \"rwxcda\";\n\
         Signature: \"sig-ed25519-hex:00\"\n",
    ),
    (
        "grant",
        "KeyNote-Version: 2\n\
         Authorizer: \"ed25519-base64:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\"\n\
         Licensees: \"ed25519-base64:CAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg=\"\n\
         Conditions: app_domain == \"Comity\" &&\n\texport == \"/srv/p\" &&\n\
         \t(object == \"0123456789abcdef0123456789abcdef\" || \
         within ~= \"0123456789abcdef0123456789abcdef\") &&\n\
         \tnow < \"2026-12-25T00:00:00Z\" -> \"rwx\";\nComment: report\n",
    ),
];

macro_rules! key_files {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!("../../../../crates/keys/tests/files/", $name)))),*]
    };
}

/// Files of OpenSSH and openssl without a passphrase.
const KEYS: &[(&str, &str)] = key_files!(
    "ssh_ed25519",
    "ssh_ed25519.pub",
    "ssh_p256",
    "ssh_p256.pub",
    "ssh_p256_encrypted",
    "openssl_ed25519.pem",
    "openssl_p256.pem",
    "openssl_p256_ec.pem",
    "openssl_p256_public.pem",
    "openssl_p256_certificate.pem"
);

const NAMES: &[(&str, &str)] = &[
    ("text", "ed25519:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n"),
    (
        "keynote",
        "# a key\n\ned25519-hex:0707070707070707070707070707070707070707070707070707070707070707",
    ),
];

pub(crate) fn all() -> std::io::Result<()> {
    super::texts("assertion", ASSERTIONS)?;
    super::texts("keys", KEYS)?;
    super::texts("keys", NAMES)
}
