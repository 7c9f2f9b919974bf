//! Assertions that try to get more rights than were given, or to cost more work than the limits
//! allow.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{
    Assertion, Attributes, Exhausted, Grant, PolicyAssertion, Principal, Query, Rights,
    SignedAssertion, UnverifiedReason, limits, sign,
};
use comity_keys::{Algorithm, PrivateKey, PublicKey, Signer};

const OBJECT: &str = "x0123456789abcdef0123456789abcdefz";

fn key() -> PrivateKey {
    PrivateKey::generate(Algorithm::Ed25519).unwrap()
}

fn grant(from: &PrivateKey, to: &PublicKey) -> String {
    let grant = Grant {
        authorizer: *from.public_key(),
        licensee: *to,
        export: Some("/srv".into()),
        object: OBJECT.into(),
        rights: "r".parse().unwrap(),
        expires: None,
        is_final: false,
        comment: None,
    };
    grant.sign(from).unwrap()
}

/// The rights that a requester gets from Alice's key by some signed assertions.
fn given(alice: &PrivateKey, requester: &PublicKey, texts: &[String]) -> Rights {
    let signed: Vec<_> = texts.iter().map(|text| SignedAssertion::parse(text).unwrap()).collect();
    let requesters = [Principal::from(*requester)];
    let attributes = [("app_domain", "Comity"), ("export", "/srv"), ("object", OBJECT)];
    let query = Query { requesters: &requesters, attributes: &attributes };
    let evaluation = query.rights(signed.iter().map(SignedAssertion::prepared)).unwrap();
    evaluation.value(&Principal::from(*alice.public_key()))
}

fn evaluated(text: &str, attributes: &dyn Attributes) -> Result<Rights, Exhausted> {
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let query = Query { requesters: &[], attributes };
    let evaluation = query.rights(policies.iter().map(PolicyAssertion::prepared));
    evaluation.map(|evaluation| evaluation.policy())
}

#[test]
fn a_replayed_credential_of_another_key_gives_nothing() {
    let [alice, bob, eve] = [key(), key(), key()];
    let for_bob = grant(&alice, bob.public_key());
    assert_eq!(given(&alice, bob.public_key(), std::slice::from_ref(&for_bob)).to_string(), "r");
    assert_eq!(given(&alice, eve.public_key(), &[for_bob]), Rights::NONE);
}

#[test]
fn an_edited_credential_is_refused() {
    let [alice, bob, eve] = [key(), key(), key()];
    let text = grant(&alice, bob.public_key());
    let stolen = text.replace(&bob.public_key().to_keynote(), &eve.public_key().to_keynote());
    for edited in [stolen, text.replace("\"r\"", "\"rwx\""), text.replace(" -> ", " || true -> ")] {
        assert_ne!(edited, text);
        let error = SignedAssertion::parse(edited).unwrap_err();
        assert_eq!(error, UnverifiedReason::WrongSignature);
    }
}

#[test]
fn nobody_signs_for_policy_or_for_another_key() {
    let [alice, eve] = [key(), key()];
    let policy = "Authorizer: \"POLICY\"\n".to_owned();
    assert!(sign(&policy, &eve).is_err());
    let signature = grant(&eve, eve.public_key());
    let signature = signature.lines().last().unwrap();
    for authorizer in ["POLICY", &alice.public_key().to_keynote(), "ed25519-hex:00"] {
        let text = format!("Authorizer: \"{authorizer}\"\n{signature}\n");
        assert!(SignedAssertion::parse(text).is_err(), "{authorizer}");
    }
}

#[test]
fn a_cycle_of_signed_assertions_gives_nothing() {
    let [alice, bob, eve] = [key(), key(), key()];
    let circle = [grant(&alice, bob.public_key()), grant(&bob, alice.public_key())];
    assert_eq!(given(&alice, eve.public_key(), &circle), Rights::NONE);
}

#[test]
fn ten_megabytes_of_nested_parentheses_are_refused_when_signed_too() {
    let alice = key();
    let name = alice.public_key().to_keynote();
    let text = format!("Authorizer: \"{name}\"\nConditions: {}", "(".repeat(10 << 20));
    assert_eq!(SignedAssertion::parse(&text).unwrap_err(), UnverifiedReason::TooLong);
    let short = text[..limits::SIGNED_TEXT_BYTES_MAX].to_owned();
    let error = SignedAssertion::parse(short).unwrap_err().to_string();
    assert!(error.contains("expected a nesting that is less deep"), "{error}");
}

#[test]
fn the_work_of_a_hostile_regular_expression_is_bounded() {
    let text = "a".repeat(4096) + "b";
    let attributes = [("text", text.as_str())];
    let policy = |pattern: &str| {
        format!(
            "Authorizer: \"POLICY\"\nConditions: text ~= \"{pattern}\" -> \"r\"; true -> \"w\";\n"
        )
    };
    // A backtracking engine would take time that is exponential in the length of the text.
    for pattern in ["^(a*)*$", "^(a|a)*$", "^(a|aa)+$", "(x+x+)+y"] {
        assert_eq!(evaluated(&policy(pattern), &attributes).unwrap().to_string(), "w", "{pattern}");
    }
    // Expressions that compile to too large a program are invalid, so their test is false.
    for pattern in ["((a{255}){255}){255}", &"(".repeat(3000), &"a?".repeat(3000)] {
        assert_eq!(evaluated(&policy(pattern), &attributes).unwrap().to_string(), "w");
    }
    // The work of an expression is counted by its size times the length of the text.
    let heavy = policy(&format!("^{}$", "a?".repeat(250)));
    assert_eq!(evaluated(&heavy, &attributes), Err(Exhausted));
    let short = [("text", "aaa")];
    assert_eq!(evaluated(&heavy, &short).unwrap().to_string(), "rw");
}

#[test]
fn the_work_of_many_computed_regular_expressions_is_bounded() {
    let tests: String = (0..500).map(|at| format!("a ~= b . \"(x{at})\"; ")).collect();
    let text = format!("Authorizer: \"POLICY\"\nConditions: {tests}\n");
    assert_eq!(evaluated(&text, &[]), Err(Exhausted));
    let tests: String = (0..500).map(|at| format!("a ~= \"(x{at})\"; ")).collect();
    let text = format!("Authorizer: \"POLICY\"\nConditions: {tests}\n");
    assert_eq!(evaluated(&text, &[]), Err(Exhausted));
}

#[test]
fn the_work_of_long_constants_that_are_used_often_is_bounded() {
    let long = "x".repeat(30_000);
    let names = vec!["A"; limits::LICENSEES_MAX].join(" || ");
    let sums = vec!["A"; 6000].join(" . ");
    let text = format!(
        "Authorizer: \"POLICY\"\nLocal-Constants: A = \"{long}\"\nLicensees: {names}\n\
         Conditions: {sums} == \"\"; true -> \"r\";\n"
    );
    // Each use of a name is evaluated, so that its work is counted each time.
    assert_eq!(evaluated(&text, &[]), Err(Exhausted));
    let text = format!(
        "Authorizer: \"POLICY\"\nLocal-Constants: A = \"{long}\"\n\
         Conditions: {sums} == \"\" -> \"w\"; true -> \"r\";\n"
    );
    assert_eq!(evaluated(&text, &[]).unwrap().to_string(), "r");
}

#[test]
fn the_work_of_long_matched_groups_is_bounded() {
    let long = "x".repeat(60_000);
    let clauses = "true -> \"\"; ".repeat(4000);
    let groups = "(x*)".repeat(10);
    let text = format!(
        "Authorizer: \"POLICY\"\nConditions: a ~= \"{groups}\" -> {{ {clauses} true -> \"r\"; }};\n"
    );
    assert_eq!(evaluated(&text, &[("a", long.as_str())]), Err(Exhausted));
    let uses = "_1 . _1 != \"\" -> \"\"; ".repeat(1000);
    let text =
        format!("Authorizer: \"POLICY\"\nConditions: a ~= \"^(x*)$\" -> {{ {uses} true; }};\n");
    assert_eq!(evaluated(&text, &[("a", &long[..3000])]), Err(Exhausted));
}

#[test]
fn reserved_attributes_come_from_the_query_only() {
    let attributes = [("_MAX_TRUST", "none"), ("_ACTION_AUTHORIZERS", "root"), ("_1", "x")];
    let text = "Authorizer: \"POLICY\"\nConditions: _MAX_TRUST == \"rwxcda\" && \
                _ACTION_AUTHORIZERS == \"\" && _1 == \"\" && $\"_1\" == \"\" -> \"r\";\n";
    assert_eq!(evaluated(text, &attributes).unwrap().to_string(), "r");
}

#[test]
fn an_evaluation_in_which_many_licensees_rise_in_turn_ends() {
    let right = ["r", "w", "x", "c", "d", "a"];
    let rising: String = (0..limits::LICENSEES_MAX)
        .map(|at| {
            let value = right[at % right.len()];
            format!("Authorizer: \"k{at}\"\nConditions: true -> \"{value}\";\n\n")
        })
        .collect();
    let names: Vec<String> = (0..limits::LICENSEES_MAX).map(|at| format!("\"k{at}\"")).collect();
    let text = format!("Authorizer: \"POLICY\"\nLicensees: {}\n\n{rising}", names.join(" || "));
    assert_eq!(evaluated(&text, &[]), Ok(Rights::ALL));
}

#[test]
fn text_behind_the_signature_is_not_part_of_the_assertion() {
    let [alice, bob] = [key(), key()];
    let text = grant(&alice, bob.public_key());
    assert!(SignedAssertion::parse(format!("{text}Conditions: true;\n")).is_err());
    assert!(SignedAssertion::parse(format!("{text}\nAuthorizer: \"POLICY\"\n")).is_err());
    let same = SignedAssertion::parse(format!("{text}\n# a comment\n")).unwrap();
    assert_eq!(same.text(), text);
    assert_eq!(*same.prepared().assertion(), Assertion::parse(&text).unwrap());
}
