//! The two examples of RFC 2704, section 6, with the results that it gives.
//!
//! The RFC writes one authorizer as `dsa:` where its assertions write `DSA:`. Both name algorithms
//! that are not supported here, so the principals are opaque, and opaque names differ by their
//! case. The tests write it as the assertions do. Credential H of the RFC has `=` for `==`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{OrderedValues, PolicyAssertion, Principal, Query};

/// The index of the result in the order of the values.
fn result(
    assertions: &str,
    values: &[&str],
    requesters: &[&str],
    attributes: &[(&str, &str)],
) -> usize {
    let policies = PolicyAssertion::parse_all(assertions).unwrap();
    let requesters: Vec<Principal> = requesters.iter().map(|name| Principal::named(name)).collect();
    let attributes = attributes.to_vec();
    let values = OrderedValues::new(values).unwrap();
    let query = Query { requesters: &requesters, attributes: &attributes };
    let assertions = policies.iter().map(PolicyAssertion::prepared);
    query.ordered(&values, assertions).unwrap().policy()
}

const EMAIL: &str = r#"
Authorizer: "POLICY"
Licensees: "RSA:abc123"

KeyNote-Version: 2
Local-Constants: Alice="DSA:4401ff92"  # a key
                 Bob="RSA:d1234f"
Authorizer: "RSA:abc123"
Licensees: Alice || Bob
Conditions: (app_domain == "RFC822-EMAIL") &&
            (address ~= "^.*@keynote\\.research\\.att\\.com$");
Signature: "RSA-SHA1:213354f9"

KeyNote-Version: 2
Authorizer: "DSA:4401ff92"
Licensees: "DSA:12340987"
Conditions: ((app_domain == "RFC822-EMAIL") &&
             (name == "M. Blaze" || name == "") &&
             (address == "mab@keynote.research.att.com"));
Signature: "DSA-SHA1:ab23487"

KeyNote-Version: "2"
Authorizer: "DSA:4401ff92"
Licensees: "DSA:abc991" ||
           "RSA:cde773" || # three keys of one person
           "BFIK:fd091a"
Conditions: ((app_domain == "RFC822-EMAIL") &&
             (name == "J. Feigenbaum" || name == "") &&
             (address == "jf@keynote.research.att.com"));
Signature: "DSA-SHA1:8912aa"
"#;

#[test]
fn the_certificates_for_mail_give_the_results_of_the_rfc() {
    let mab = "mab@keynote.research.att.com";
    for (requester, address, name, expected) in [
        ("DSA:12340987", mab, None, true),
        ("DSA:12340987", mab, Some("M. Blaze"), true),
        ("DSA:12340987", "angelos@dsl.cis.upenn.edu", None, false),
        ("DSA:abc991", mab, Some("M. Blaze"), false),
        ("DSA:12340987", mab, Some("J. Feigenbaum"), false),
        ("BFIK:fd091a", "jf@keynote.research.att.com", None, true),
    ] {
        let mut attributes = vec![("app_domain", "RFC822-EMAIL"), ("address", address)];
        attributes.extend(name.map(|name| ("name", name)));
        let result = result(EMAIL, &["false", "true"], &[requester], &attributes);
        assert_eq!(result == 1, expected, "{requester} {address} {name:?}");
    }
}

const SPENDING: &str = r#"
Authorizer: "POLICY"
Licensees: "RSA:dab212"
Conditions: (app_domain=="SPEND") && (@dollars < 10000);

KeyNote-Version: 2
Comment: a policy of spending
Authorizer: "RSA:dab212"
Licensees: "DSA:feed1234" &&
               ("RSA:abc123" ||
                "DSA:bcd987" ||
                "DSA:cde333" ||
                "DSA:def975" ||
                "DSA:978add")
Conditions: (app_domain=="SPEND")
              -> { (@(dollars) < 2500)
                     -> _MAX_TRUST;
                   (@(dollars) < 7500)
                     -> "ApproveAndLog";
                 };
Signature: "RSA-SHA1:9867a1"

KeyNote-Version: 2
Authorizer: "POLICY"
Licensees: 2-of("DSA:feed1234",
                "RSA:abc123",   # one of five
                "DSA:bcd987",
                "DSA:cde333",
                "DSA:def975",
                "DSA:978add")
Conditions: (app_domain=="SPEND") &&
            (@(dollars) < 1000);

KeyNote-Version: 2
Comment: one signer
         is enough for less
Authorizer: "RSA:dab212"
Licensees: "DSA:feed1234" ||
           "RSA:abc123" ||
           "DSA:bcd987" ||
           "DSA:cde333" ||
           "DSA:def975" ||
           "DSA:978add"
Conditions: (app_domain=="SPEND")
              -> { (@(dollars) < 100) -> _MAX_TRUST;
                   (@(dollars) < 500) -> "ApproveAndLog";
                 };
Signature: "RSA-SHA1:186123"
"#;

#[test]
fn the_spending_policy_gives_the_results_of_the_rfc() {
    let values = ["Reject", "ApproveAndLog", "Approve"];
    for (requesters, dollars, expected) in [
        (&["DSA:978add"][..], "45", "Approve"),
        (&["RSA:abc123", "DSA:cde333"], "550", "Approve"),
        (&["DSA:feed1234", "DSA:cde333"], "5500", "ApproveAndLog"),
        (&["DSA:cde333"], "150", "ApproveAndLog"),
        (&["DSA:def975"], "550", "Reject"),
        (&["DSA:cde333", "DSA:978add"], "5500", "Reject"),
    ] {
        let attributes =
            [("app_domain", "SPEND"), ("dollars", dollars), ("unmentioned_attribute", "whatever")];
        let result = result(SPENDING, &values, requesters, &attributes);
        assert_eq!(values[result], expected, "{requesters:?} {dollars}");
    }
}

/// RFC 2704, section 5.3.4.
#[test]
fn the_highest_clause_that_holds_decides() {
    let policy = r#"Authorizer: "POLICY"
Conditions:
    @user_id == 0 -> "full_access";
    @user_id < 1000 -> "user_access";
    @user_id < 10000 -> "guest_access";
    user_name == "root" -> "full_access";
"#;
    let values = ["no_access", "guest_access", "user_access", "full_access"];
    let value = |id, name| {
        let attributes = [("user_id", id), ("user_name", name)];
        values[result(policy, &values, &[], &attributes)]
    };
    assert_eq!(value("1073", "root"), "full_access");
    assert_eq!(value("19283", "nobody"), "no_access");
    assert_eq!(value("1073", "nobody"), "guest_access");
    assert_eq!(value("999", "nobody"), "user_access");
    assert_eq!(value("", "nobody"), "full_access");
}

/// RFC 2704, section 5.3.4.
#[test]
fn nested_clauses_are_those_whose_outer_test_holds() {
    let nested = "a==\"b\" -> { b==\"c\" -> \"one\"; d==\"e\" -> \"two\"; true -> \"three\"; };";
    let flat = "(a==\"b\") && (b==\"c\") -> \"one\"; (a==\"b\") && (d==\"e\") -> \"two\"; \
                (a==\"b\") -> \"three\";";
    let values = ["zero", "three", "two", "one"];
    for a in ["b", "x"] {
        for b in ["c", "x"] {
            for d in ["e", "x"] {
                let attributes = [("a", a), ("b", b), ("d", d)];
                let of = |conditions: &str| {
                    let policy = format!("Authorizer: \"POLICY\"\nConditions: {conditions}\n");
                    result(&policy, &values, &[], &attributes)
                };
                assert_eq!(of(nested), of(flat), "{attributes:?}");
            }
        }
    }
}

/// RFC 2704, section 5.3.5.
#[test]
fn licensees_have_the_values_that_the_rfc_gives() {
    let values = ["0", "1", "2", "3"];
    let of = |licensees: &str| {
        let mut text = format!("Authorizer: \"POLICY\"\n{licensees}\n");
        for (name, value) in [("a", "0"), ("b", "1"), ("c", "2"), ("d", "2"), ("e", "3")] {
            text += &format!("\nAuthorizer: \"{name}\"\nConditions: true -> \"{value}\";\n");
        }
        values[result(&text, &values, &["r"], &[])]
    };
    for (licensees, expected) in [
        ("Licensees: 1-of(a, b, c, d, e)", "3"),
        ("Licensees: 3-of(a, b, c, d, e)", "2"),
        ("Licensees: 5-of(a, b, c, d, e)", "0"),
        ("Licensees: 2-of(c, c)", "2"),
        ("Licensees: b && c || a", "1"),
        ("Licensees: b || c && e", "2"),
        ("Licensees: (b || c) && e", "2"),
        ("Licensees: stranger", "0"),
        ("Licensees: stranger || r", "3"),
        ("Licensees:", "0"),
        ("", "3"),
    ] {
        // The names are constants, so that they need no quotes.
        let constants = "Local-Constants: a=\"a\" b=\"b\" c=\"c\" d=\"d\" e=\"e\" r=\"r\" \
                         stranger=\"stranger\"";
        assert_eq!(of(&format!("{constants}\n{licensees}")), expected, "{licensees}");
    }
}
