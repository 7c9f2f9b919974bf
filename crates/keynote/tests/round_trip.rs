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
