//! Conditions and principals (RFC 2704, sections 4 and 5), and cases like those of the test suite
//! of libkeynote.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{OrderedValues, PolicyAssertion, Principal, Query, Rights};

fn value(assertions: &str, requesters: &[&str], attributes: &[(&str, &str)]) -> &'static str {
    const VALUES: &[&str] = &["false", "maybe", "probably", "true"];
    let policies = PolicyAssertion::parse_all(assertions).unwrap();
    let requesters: Vec<Principal> = requesters.iter().map(|name| Principal::named(name)).collect();
    let attributes = attributes.to_vec();
    let values = OrderedValues::new(VALUES).unwrap();
    let query = Query { requesters: &requesters, attributes: &attributes };
    let assertions = policies.iter().map(PolicyAssertion::prepared);
    VALUES[query.ordered(&values, assertions).unwrap().policy()]
}

const ATTRIBUTES: &[(&str, &str)] = &[
    ("app_domain", "testing"),
    ("one", "two"),
    ("two", "three"),
    ("three", "four"),
    ("four", "POLICY"),
    ("number", "12"),
    ("fraction", "-1.5"),
    ("text", "abcabd"),
    ("huge", "99999999999"),
];

fn holds(test: &str) -> bool {
    let policy = format!("Authorizer: \"POLICY\"\nConditions: {test};\n");
    value(&policy, &["KeyA", "KeyB"], ATTRIBUTES) == "true"
}

#[test]
fn tests_are_true_as_the_rfc_says() {
    for test in [
        "one == \"two\" && $(\"one\") == \"two\" && $one == \"three\" && $(one) == \"three\"",
        "$$one == \"four\" && $$$one == \"POLICY\" && $$$$one == \"\"",
        "$one . two == ($one) . two && $one . two != $(one . two)",
        "$(\"o\" . \"ne\") == one && $ \"o\" . \"ne\" == \"ne\"",
        "missing == \"\" && @missing == 0 && &missing < 0.5 && @missing == @one",
        "@number == 12 && @number + 1 == 13 && -1 * 12 == -@number",
        "@fraction == -2 && &fraction < -1.4 && &fraction > -1.6",
        "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20 && 2 * 3 ^ 2 == 18 && 7 - 2 - 1 == 4",
        "2 ^ 3 ^ 2 == 64 && 7 % 4 == 3 && 7 / 2 == 3 && -7 / 2 == -3",
        "1.5 + 1.5 < 3.1 && 2.0 ^ 0.5 > 1.4 && 1.0 / 4.0 <= 0.25",
        "\"abc\" < \"abd\" && \"B\" < \"a\" && \"a\" <= \"a\" && \"b\" > \"a\" && \"a\" != \"A\"",
        "TRUE && !False && (true || false) && !(false && true)",
        "text ~= \"^(abc|x)+abd$\" && text ~= \"b.\" && !(text ~= \"^b\")",
        "text ~= \"^(a)(b(c))\" && _0 == \"3\" && @_0 == 3 && _1 . _2 . _3 == \"abcc\"",
        "text ~= \"(a)\" && text ~= \"b\" && _0 == \"0\" && _1 == \"\"",
        "text ~= \"(a)\" && !(text ~= \"(z)\") && _0 == \"\" && _1 == \"\"",
        "_VALUES == \"false,maybe,probably,true\" && _VALUES != \"foo\"",
        "_MIN_TRUST == \"false\" && _MAX_TRUST == \"true\" && _OTHER == \"\"",
        "_ACTION_AUTHORIZERS ~= \"(.*,)KeyB\" && @ _0 == 2^2/4 && _1 == \"KeyA,\"",
        "true || 1/0 == 1",
        "!(false && 1/0 == 1)",
    ] {
        assert!(holds(test), "{test}");
    }
}

#[test]
fn an_error_makes_the_whole_test_false() {
    for test in [
        "1/0 == 1",
        "!(1/0 == 1)",
        "1 % 0 == 0 || true",
        "2147483647 + 1 == 0 || true",
        "@huge < 1000 || true",
        "&text < 1.0 && 1.0 / 0.0 < 1.0",
        "text ~= \"(\" || true",
        "!(text ~= \"a**\")",
        "text ~= _OTHER . \"[\" || true",
    ] {
        assert!(!holds(test), "{test}");
    }
    let policy = "Authorizer: \"POLICY\"\nConditions: 1/0 == 1 -> \"true\"; true -> \"maybe\";\n";
    assert_eq!(value(policy, &[], &[]), "maybe");
}

#[test]
fn groups_of_a_match_end_with_their_clause() {
    let policy = "Authorizer: \"POLICY\"
Conditions: text ~= \"(a)(b)\" -> {
        text ~= \"(c)\" && _0 == \"1\" && _1 == \"c\" -> \"maybe\";
        _0 == \"2\" && _2 == \"b\" -> \"probably\";
    };
    _0 != \"\" -> \"true\";
";
    assert_eq!(value(policy, &[], ATTRIBUTES), "probably");
    let policy = "Authorizer: \"POLICY\"\nConditions: text ~= \"(ab)(c)\" -> \"may\" . _2 . \"e\";
    text ~= \"^a(b)\" -> \"pro\" . _1 . \"ably\";\n";
    assert_eq!(value(policy, &[], ATTRIBUTES), "probably");
}

#[test]
fn values_that_the_query_does_not_have_are_the_lowest() {
    for (conditions, expected) in [
        ("true -> \"TRUE\";", "false"),
        ("true -> missing;", "false"),
        ("true -> \"may\" . \"be\";", "maybe"),
        ("true -> _MAX_TRUST;", "true"),
        ("true;", "true"),
        ("false; false -> \"true\";", "false"),
        ("", "false"),
    ] {
        let policy = format!("Authorizer: \"POLICY\"\nConditions: {conditions}\n");
        assert_eq!(value(&policy, &[], &[]), expected, "{conditions}");
    }
    assert_eq!(value("Authorizer: \"POLICY\"\n", &[], &[]), "true");
    assert_eq!(value("Authorizer: \"other\"\n", &[], &[]), "false");
}

#[test]
fn constants_override_attributes_in_their_assertion_only() {
    let text = "Authorizer: \"POLICY\"\nLicensees: WHO\nConditions: one == \"own\" && $two == \"\";
Local-Constants: one = \"own\"
    WHO = \"next\"\n\nAuthorizer: \"next\"\nLicensees: \"KeyA\"\nConditions: one == \"two\";\n";
    assert_eq!(value(text, &["KeyA"], ATTRIBUTES), "false");
    let text = text.replace("$two == \"\"", "$two == \"four\"");
    assert_eq!(value(&text, &["KeyA"], ATTRIBUTES), "true");
}

#[test]
fn principals_may_be_named_by_attributes_of_the_action() {
    let text = "Authorizer: four\nLicensees: KEY . \"A\" || $one\nLocal-Constants: KEY = \"Key\"\n";
    assert_eq!(value(text, &["KeyA"], ATTRIBUTES), "true");
    assert_eq!(value(text, &["three"], ATTRIBUTES), "true");
    assert_eq!(value(text, &["KeyB"], ATTRIBUTES), "false");
    assert_eq!(value(text, &["KeyA"], &[("four", "other")]), "false");
}

#[test]
fn keys_in_hexadecimal_and_in_base64_are_one_principal() {
    let hex = format!("ed25519-hex:{}", "07".repeat(32));
    let base64 = "ed25519-base64:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
    let text = format!("Authorizer: \"POLICY\"\nLicensees: \"{base64}\"\n");
    assert_eq!(value(&text, &[&hex], &[]), "true");
    assert_eq!(value(&text, &[&hex.to_uppercase()], &[]), "true");
    assert_eq!(value(&text, &[&hex.replace("07", "08")], &[]), "false");
    assert_eq!(value(&text.replace("BwcH", "Bwc"), &[&hex], &[]), "false");
}

/// Seven assertions with only one chain that gives `true`: other chains fail by their conditions or
/// licensees.
const SUITE: &str = "keynote-version: 2 # a comment
comment: of the first one
\tin two lines
# between fields
#authorizer: $$$$one # not this one
authorizer: \"POLICY\"
licensees: (FIRST) && (((\"Key3\") || \"Key4\") && (FIRST)) || SECOND
local-constants: FIRST = \"Key3\"
# within a field
\tSECOND = \"dsa-hex:3081de02402ae5\\
\t\t  f1b8d0\"
conditions: app_domain == \"testing\" ->
# within a field
\t{
\t  1 / 0 == 1 -> \"true\"; # an error
\t  true -> \"false\";
\t  request == \"other\" -> \"false\";
\t  SECOND == \"dsa-hex:3081de02402ae5\\
            f1b8d0\" &&
\t  @(text) == @text &&
\t  \"one\\n\\\n \\ line\" == \"one\\n\\ \\\n  line\" &&
\t  \"a\\012\\040b\" == \"a\\n b\" &&
\t  request == \"test\" -> \"true\";
\t  request == \"test\" -> \"fa\" . \"lse\";
\t};

authorizer: \"POLICY\"
licensees: \"Key10\"
conditions: app_domain == \"testing\" && kind == \"no\" -> \"true\";
\ttrue -> \"false\";

authorizer: \"Key3\"
licensees: 2-of(\"Key5\", \"Key6\", \"Key7\", \"KeyE\")
conditions: $$one == \"four\" && kind == \"yes\" -> \"true\";

authorizer: \"Key4\"
licensees: \"Key8\"
conditions: kind == \"yes\" -> \"true\";

authorizer: \"Key5\"
licensees: \"Key6\"
conditions: kind == \"no\" -> \"true\";
\tapp_domain == \"testing\" -> {
\t  app_domain == \"testing\" -> \"false\";
\t  kind == \"no\" -> { one == \"two\" -> \"true\"; };
\t};

authorizer: \"Key6\"
licensees: \"KeyB\"
conditions: (kind == \"no\" || kind == \"yes\") -> \"true\";

comment: KeyC requests
authorizer: \"Key6\"
licensees: \"KeyC\"
conditions: _ACTION_AUTHORIZERS ~= \"(.*,)KeyE,.*\" && kind == \"yes\" -> \"true\";
\t@one / @one == @one -> \"maybe\";
";

#[test]
fn assertions_like_the_suite_of_libkeynote_give_true() {
    let mut attributes = ATTRIBUTES.to_vec();
    attributes.extend([("request", "test"), ("kind", "yes")]);
    let requesters = ["KeyC", "KeyE", "Key12"];
    assert_eq!(value(SUITE, &requesters, &attributes), "true");
    assert_eq!(value(SUITE, &["KeyC", "Key12"], &attributes), "false");
    assert_eq!(value(SUITE, &["KeyE", "Key12"], &attributes), "false");
    assert_eq!(value(SUITE, &["Key3"], &attributes), "true");
    assert_eq!(value(SUITE, &["dsa-hex:3081de02402ae5f1b8d0"], &attributes), "true");
    attributes.retain(|(name, _)| *name != "kind");
    assert_eq!(value(SUITE, &requesters, &attributes), "false");
}

fn rights(text: &str, requester: &str) -> Rights {
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let query =
        Query { requesters: &[Principal::named(requester)], attributes: &ATTRIBUTES.to_vec() };
    query.rights(policies.iter().map(PolicyAssertion::prepared)).unwrap().policy()
}

#[test]
fn rights_are_intersected_along_a_chain_and_united_over_chains() {
    let chain = |first: &str, second: &str| {
        format!(
            "Authorizer: \"POLICY\"\nLicensees: \"alice\"\nConditions: true -> \"{first}\";\n\n\
             Authorizer: \"alice\"\nLicensees: \"bob\"\nConditions: true -> \"{second}\";\n"
        )
    };
    let of = |text: &str| rights(text, "bob").to_string();
    // If all sets of rights were in one order, "w" would be less than "r", and this chain would
    // give it.
    assert_eq!(of(&chain("r", "w")), "none");
    assert_eq!(of(&chain("rwx", "xcr")), "rx");
    assert_eq!(of(&chain("none", "rwx")), "none");
    assert_eq!(of(&chain("rwz", "r")), "none");
    let both = format!("{}\n{}", chain("r", "rw"), chain("wx", "wx"));
    assert_eq!(of(&both), "rwx");
    assert_eq!(rights(&chain("r", "w"), "alice").to_string(), "r");
    let clauses = "Authorizer: \"POLICY\"\nConditions: true -> \"r\"; one == \"two\" -> \"x\"; \
                   false -> \"w\"; true -> \"\"; text ~= \"(d)\" -> \"a\" . _1;\n";
    assert_eq!(of(clauses), "rxda");
    let reserved = "Authorizer: \"POLICY\"\nConditions: _MAX_TRUST == \"rwxcda\" && \
                    _MIN_TRUST == \"none\" && _VALUES == \"none,r,w,x,c,d,a\" -> _MAX_TRUST;\n";
    assert_eq!(of(reserved), "rwxcda");
}
