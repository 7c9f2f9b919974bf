//! The canonical text of a tree is read as the same tree.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod trees;

use comity_keynote::Assertion;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_printed_tree_is_read_as_the_same_tree(body in trees::body()) {
        let text = body.to_string();
        let read = Assertion::parse(&text).map_err(|error| format!("{error}\n{text}"));
        let read = read.map_err(TestCaseError::fail)?;
        prop_assert_eq!(read.body(), &body, "{}", text);
        prop_assert_eq!(read.body().to_string(), text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn several_assertions_in_one_text_are_read_one_by_one(
        bodies in proptest::collection::vec(trees::body(), 0..4),
        between in "\n([ \t]{0,2}\n|# x\n\n){0,3}",
    ) {
        let texts: Vec<String> = bodies.iter().map(ToString::to_string).collect();
        let text = texts.join(&between);
        let read = Assertion::parse_all(&text).map_err(|error| format!("{error}\n{text}"));
        let read = read.map_err(TestCaseError::fail)?;
        let read: Vec<_> = read.iter().map(|assertion| assertion.body().clone()).collect();
        prop_assert_eq!(read, bodies, "{}", text);
    }
}

#[test]
fn a_comment_cannot_become_another_field() {
    let mut body =
        Assertion::parse("Authorizer: \"a\"\nLicensees: \"b\"\n").unwrap().body().clone();
    body.comment = Some("one\n\nAuthorizer: \"POLICY\"\n# two\r\n\0".into());
    let read = Assertion::parse(body.to_string()).unwrap();
    let comment = read.body().comment.clone().unwrap();
    assert_eq!(comment, "one\nAuthorizer: \"POLICY\"\n# two");
    assert_eq!(read.body().authorizer, body.authorizer);
}
