//! Random expressions of strings, and random texts.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod conditions;
mod trees;

use comity_keynote::tree::{Body, StringExpr};
use comity_keynote::{Assertion, PolicyAssertion, Query, Rights, SignedAssertion, sign};
use comity_keys::{Algorithm, PrivateKey, Signer};
use proptest::prelude::*;
use proptest::sample::select;

const ATTRIBUTES: [(&str, &str); 4] = [("a", "b"), ("b", "c"), ("c", "ab"), ("ab", "")];

/// The value of an attribute, or the empty string.
fn attribute(name: &str) -> String {
    let found = ATTRIBUTES.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, value)| value).to_owned()
}

fn reference(expression: &StringExpr) -> String {
    match expression {
        StringExpr::Literal(text) => text.clone(),
        StringExpr::Attribute(name) => attribute(name),
        StringExpr::Dereference(name) => attribute(&reference(name)),
        StringExpr::Concatenation(parts) => parts.iter().map(reference).collect(),
    }
}

fn expressions() -> impl Strategy<Value = StringExpr> {
    let name = select(vec!["a", "b", "c", "d"]);
    let leaf = prop_oneof![
        name.prop_map(|name| StringExpr::Attribute(name.into())),
        "[abc]{0,2}".prop_map(StringExpr::Literal),
    ];
    leaf.prop_recursive(5, 16, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|name| StringExpr::Dereference(Box::new(name))),
            prop::collection::vec(inner, 2..4).prop_map(StringExpr::Concatenation),
        ]
    })
}

fn rights(policy: &PolicyAssertion, attributes: &dyn comity_keynote::Attributes) -> Rights {
    let query = Query { requesters: &[], attributes };
    query.rights([policy.prepared()]).unwrap().policy()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn strings_are_put_together_and_dereferenced(one in expressions(), other in expressions()) {
        let (left, right) = (reference(&one), reference(&other));
        for (symbol, expected) in [
            ("==", left == right), ("!=", left != right), ("<", left < right),
            (">", left > right), ("<=", left <= right), (">=", left >= right),
        ] {
            let text = format!("Authorizer: \"POLICY\"\nConditions: {one} {symbol} {other};\n");
            let policy = PolicyAssertion::parse_all(&text).unwrap().remove(0);
            prop_assert_eq!(rights(&policy, &ATTRIBUTES) == Rights::ALL, expected, "{}", text);
        }
    }

    /// A constant expression is computed before the query, and has the same value as in the query.
    #[test]
    fn constants_have_the_same_values_as_attributes(expression in expressions()) {
        let constants = ATTRIBUTES.map(|(name, value)| format!("{name} = \"{value}\"")).join(" ");
        let value = reference(&expression);
        let text = format!(
            "Authorizer: \"POLICY\"\nLocal-Constants: {constants}\n\
             Conditions: {expression} == \"{value}\" && \"{value}x\" ~= {expression} . \"x$\";\n"
        );
        let policy = PolicyAssertion::parse_all(&text).unwrap().remove(0);
        prop_assert_eq!(rights(&policy, &[]), Rights::ALL, "{}", text);
    }

    #[test]
    fn the_canonical_text_gives_the_same_as_the_text(
        policy in conditions::policy(),
        attributes in conditions::attributes(),
    ) {
        let printed = policy.prepared().assertion().body().to_string();
        let again = PolicyAssertion::trust(Assertion::parse(&printed).unwrap());
        prop_assert_eq!(rights(&again, &attributes), rights(&policy, &attributes), "{}", printed);
    }

    #[test]
    fn a_signed_assertion_is_verified_with_the_same_content(
        body in trees::body(),
        algorithm in 0..2_usize,
    ) {
        let key = PrivateKey::generate(Algorithm::ALL[algorithm]).unwrap();
        let authorizer = StringExpr::Literal(key.public_key().to_keynote());
        let body = Body { authorizer, ..body };
        if let Ok(text) = sign(&body.to_string(), &key) {
            let signed = SignedAssertion::parse(&text).map_err(|error| format!("{error}\n{text}"));
            let signed = signed.map_err(TestCaseError::fail)?;
            prop_assert_eq!(signed.prepared().assertion().body(), &body);
        }
    }

    #[test]
    fn random_sequences_of_tokens_are_read_or_refused_with_their_place(
        words in prop::collection::vec(select(vec![
            "a", "of", "true", "\"x\"", "1", "2.5", "(", ")", "{", "}", ";", "->", "&&", "||",
            "!", "==", "<=", "~=", "+", "-", "*", "/", "%", "^", ".", "@", "&", "$", ",", "=", "#",
            "\n ",
        ]), 0..14),
        field in select(vec!["Conditions", "Licensees", "Local-Constants", "Signature", "Comment"]),
    ) {
        let text = format!("Authorizer: \"a\"\n{field}: {}\n", words.join(" "));
        match Assertion::parse(&text) {
            Ok(assertion) => {
                let printed = assertion.body().to_string();
                let again = Assertion::parse(&printed).unwrap();
                prop_assert_eq!(again.body(), assertion.body(), "{}", printed);
            }
            Err(error) => {
                let line = text.split('\n').nth(error.line as usize - 1);
                let columns = line.map(|line| line.chars().count() as u32);
                let is_there = columns.is_some_and(|columns| error.column <= columns + 1);
                prop_assert!(is_there, "{}", error);
            }
        }
    }
}
