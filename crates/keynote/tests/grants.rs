//! Canonical grants are made, signed, read and used.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{
    Assertion, Evaluation, Grant, GrantError, Need, NeededValue, PolicyAssertion, Principal, Query,
    Rights, SignedAssertion, Validity, limits,
};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};
use proptest::prelude::*;

const OBJECT: &str = "x0123456789abcdef0123456789abcdefz";
const ABOVE: &str = "xffffffffffffffffffffffffffffffffz";
const EXPIRY: &str = "2026-12-25T00:00:00Z";

fn key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Ed25519).unwrap()
}

fn grant(from: &PrivateKey, to: &PrivateKey) -> Grant {
    Grant {
        authorizer: *from.public_key(),
        licensee: *to.public_key(),
        export: Some("/srv/p".into()),
        object: OBJECT.into(),
        rights: "rwx".parse().unwrap(),
        expires: Some(EXPIRY.into()),
        is_final: false,
        comment: Some("report".into()),
    }
}

/// Alice, Bob and Carol, the grants that they sign, and the rights that follow if Alice may do
/// everything.
struct Story {
    alice: PrivateKey,
    bob: PrivateKey,
    carol: PrivateKey,
    signed: Vec<SignedAssertion>,
}

impl Story {
    fn new() -> Self {
        Self { alice: key(), bob: key(), carol: key(), signed: Vec::new() }
    }

    fn sign(&mut self, grant: &Grant, by: fn(&Self) -> &PrivateKey) {
        let text = grant.sign(by(self)).unwrap();
        self.signed.push(SignedAssertion::parse(text).unwrap());
    }

    /// The rights of a key to an object.
    fn rights(&self, key: &PublicKey, object: &str, within: &str, now: &str) -> Rights {
        let requester = key.to_keynote();
        let attributes = [
            ("app_domain", "Comity"),
            ("export", "/srv/p"),
            ("object", object),
            ("within", within),
            ("now", now),
            ("requester", &requester),
        ];
        let requesters = [Principal::from(*key)];
        let query = Query { requesters: &requesters, attributes: &attributes };
        let evaluation: Evaluation<'_, Rights> =
            query.rights(self.signed.iter().map(SignedAssertion::prepared)).unwrap();
        evaluation.value(&Principal::from(*self.alice.public_key()))
    }
}

const BEFORE: &str = "2026-12-24T23:59:59Z";

#[test]
fn a_grant_holds_for_its_object_and_below_it_until_it_expires() {
    let mut story = Story::new();
    story.sign(&grant(&story.alice, &story.bob), |story| &story.alice);
    let bob = *story.bob.public_key();
    let of =
        |object: &str, within: &str, now: &str| story.rights(&bob, object, within, now).to_string();
    assert_eq!(of(OBJECT, ABOVE, BEFORE), "rwx");
    assert_eq!(of(ABOVE, &format!("{ABOVE} {OBJECT}"), BEFORE), "rwx");
    assert_eq!(of(ABOVE, ABOVE, BEFORE), "none");
    assert_eq!(of(OBJECT, ABOVE, EXPIRY), "none");
    let carol = *story.carol.public_key();
    assert_eq!(story.rights(&carol, OBJECT, "", BEFORE), Rights::NONE);
}

#[test]
fn rights_are_handed_on_unless_the_grant_is_final() {
    for (is_final, expected) in [(false, "r"), (true, "none")] {
        let mut story = Story::new();
        let first = Grant { is_final, ..grant(&story.alice, &story.bob) };
        story.sign(&first, |story| &story.alice);
        let rights = "rc".parse().unwrap();
        let second = Grant { rights, expires: None, ..grant(&story.bob, &story.carol) };
        story.sign(&second, |story| &story.bob);
        let [bob, carol] = [*story.bob.public_key(), *story.carol.public_key()];
        assert_eq!(story.rights(&bob, OBJECT, "", BEFORE).to_string(), "rwx");
        assert_eq!(story.rights(&carol, OBJECT, "", BEFORE).to_string(), expected);
        // The chain ends when its first link expires.
        assert_eq!(story.rights(&carol, OBJECT, "", EXPIRY), Rights::NONE);
    }
}

#[test]
fn the_text_of_a_grant_is_the_documented_one() {
    let (alice, bob) = (key(), key());
    let [from, to] = [alice.public_key().to_keynote(), bob.public_key().to_keynote()];
    let text = Grant { is_final: true, ..grant(&alice, &bob) }.text().unwrap();
    let expected = format!(
        "KeyNote-Version: 2\nAuthorizer: \"{from}\"\nLicensees: \"{to}\"\n\
         Conditions: app_domain == \"Comity\" &&\n\texport == \"/srv/p\" &&\n\
         \t(object == \"{OBJECT}\" || within ~= \"{OBJECT}\") &&\n\tnow < \"{EXPIRY}\" &&\n\
         \trequester == \"{to}\" -> \"rwx\";\nComment: report\n"
    );
    assert_eq!(text, expected);
}

#[test]
fn required_attributes_and_expiry_of_a_grant_are_known_without_evaluation() {
    let (alice, bob) = (key(), key());
    let signed = SignedAssertion::parse(grant(&alice, &bob).sign(&alice).unwrap()).unwrap();
    let prepared = signed.prepared();
    assert_eq!(
        prepared.needs(&["object", "within"]).unwrap(),
        [
            Need { attribute: "object", value: NeededValue::Whole(OBJECT) },
            Need { attribute: "within", value: NeededValue::Part(OBJECT) },
        ]
    );
    assert_eq!(prepared.needs(&["object"]), None);
    assert_eq!(prepared.last_moment(), Some(EXPIRY));
    assert_eq!(prepared.authorizer(), Some(&Principal::from(*alice.public_key())));
    assert_eq!(prepared.licensees().unwrap(), [&Principal::from(*bob.public_key())]);
    let attributes =
        [("app_domain", "Comity"), ("export", "/srv/p"), ("object", OBJECT), ("now", BEFORE)];
    let requesters = [Principal::from(*bob.public_key())];
    let query = Query { requesters: &requesters, attributes: &attributes };
    let evaluation = query.rights([prepared]).unwrap();
    assert_eq!(*evaluation.validity(), Validity::Until(EXPIRY.into()));
}

#[test]
fn fields_that_cannot_be_written_are_refused() {
    let (alice, bob) = (key(), key());
    let good = || grant(&alice, &bob);
    let error = |grant: Grant| grant.text().unwrap_err();
    for object in ["", &OBJECT[1..], &OBJECT.to_uppercase(), &OBJECT.replace('0', "g")] {
        assert!(matches!(error(Grant { object: object.into(), ..good() }), GrantError::Object));
    }
    assert!(matches!(error(Grant { rights: Rights::NONE, ..good() }), GrantError::NoRights));
    for export in ["", "a\0b"] {
        assert!(matches!(
            error(Grant { export: Some(export.into()), ..good() }),
            GrantError::Export
        ));
    }
    for time in ["", "2026-12-25", "2026-12-25T00:00:00+01:00", "2026-12-25 00:00:00Z"] {
        let expires = Some(time.into());
        assert!(matches!(error(Grant { expires, ..good() }), GrantError::Expiry), "{time}");
    }
    let comment = Some("x".repeat(limits::COMMENT_BYTES_MAX + 1));
    assert!(matches!(error(Grant { comment, ..good() }), GrantError::Comment));
    assert!(matches!(good().sign(&bob), Err(GrantError::Unsigned(_))));
}

#[test]
fn other_assertions_are_not_read_as_canonical_grants() {
    let (alice, bob) = (key(), key());
    let text = Grant { is_final: true, ..grant(&alice, &bob) }.text().unwrap();
    let read = |text: &str| Grant::read(&Assertion::parse(text).unwrap());
    assert!(read(&text).is_some());
    for (from, to) in [
        ("Comity", "Other"),
        ("within ~=", "within =="),
        ("now <", "now <="),
        ("now <", "now == \"x\" && now <"),
        (" -> \"rwx\"", ""),
        ("\"rwx\"", "\"xwr\""),
        ("object ==", "object !="),
        ("Authorizer: \"ed25519", "Authorizer: \"rsa"),
        ("Conditions:", "Conditions: true;"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        assert_eq!(read(&changed), None, "{from} {to}");
    }
    let other = text.replacen(&bob.public_key().to_keynote(), &alice.public_key().to_keynote(), 1);
    assert_eq!(read(&other), None);
    let policies = PolicyAssertion::parse_all("Authorizer: \"POLICY\"\n").unwrap();
    assert_eq!(Grant::read(policies[0].prepared().assertion()), None);
}

proptest! {
    #[test]
    fn a_grant_is_read_back_as_it_was_made(
        algorithm in 0..2_usize,
        export in prop::option::of("[ -~\u{e9}\n\"\\\\]{1,40}"),
        object in "x([0-9a-f]{2}){1,40}z",
        bits in 1..64_u8,
        expires in prop::option::of("2[0-9]{3}-[01][0-9]-[0-3][0-9]T[0-2][0-9](:[0-5][0-9]){2}Z"),
        is_final: bool,
        comment in prop::option::of("[!-~]{1,10}( [!-~]{1,10})?"),
    ) {
        let key = |at: usize| PrivateKey::generate(Algorithm::ALL[algorithm ^ at]).unwrap();
        let [alice, bob] = [key(0), key(1)];
        let comment = comment.filter(|comment| !comment.starts_with('#'));
        let rights = Rights::from_bits(bits);
        let [authorizer, licensee] = [&alice, &bob].map(|key| *key.public_key());
        let grant =
            Grant { authorizer, licensee, export, object, rights, expires, is_final, comment };
        let signed = SignedAssertion::parse(grant.sign(&alice).unwrap()).unwrap();
        prop_assert_eq!(Grant::read(signed.prepared().assertion()), Some(grant));
    }
}
