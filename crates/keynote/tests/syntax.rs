//! Texts and the trees that are read from them (RFC 2704, section 4).
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use comity_keynote::{Assertion, ParseError, limits, tree};

fn printed(conditions: &str) -> String {
    let text = format!("Authorizer: \"a\"\nConditions: {conditions}");
    let body = Assertion::parse(&text).unwrap().body().to_string();
    let (_, lines) = body.split_once("Conditions: ").unwrap();
    lines.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

fn fault(text: &str) -> ParseError {
    Assertion::parse(text).unwrap_err()
}

fn fault_in(conditions: &str) -> ParseError {
    fault(&format!("Authorizer: \"a\"\nConditions: {conditions}"))
}

#[test]
fn operators_bind_as_section_4_6_5_says() {
    for (written, expected) in [
        ("@a + 2 * 3 ^ -4 == 0;", "@a + 2 * 3 ^ -4 == 0;"),
        ("(@a + 2) * 3 == 0;", "(@a + 2) * 3 == 0;"),
        ("(@a * 2) + 3 == 0;", "@a * 2 + 3 == 0;"),
        ("-(1) ^ 2 == 1;", "-1 ^ 2 == 1;"),
        ("(1 - 2) - (3 - 4) == 1;", "(1 - 2) - (3 - 4) == 1;"),
        ("!a == \"b\" && c == d || true;", "!a == \"b\" && c == d || true;"),
        ("(a == b || FALSE) && (c < d);", "(a == b || false) && c < d;"),
        ("$$a . b == $(a . b);", "$$a . b == $(a . b);"),
        ("@(a) <= @$b && &a<1.50;", "@a <= @$b && &a < 1.5;"),
        ("true == \"true\" -> { x ~= y; };", "true == \"true\" -> { x ~= y; };"),
    ] {
        assert_eq!(printed(written), expected, "{written}");
    }
}

#[test]
fn a_mixture_of_types_is_refused_at_its_operand() {
    for (conditions, column, expected) in [
        ("a == 1;", 18, "a string"),
        ("1 == a;", 18, "an integer"),
        ("@a < 1.0;", 18, "an integer"),
        ("&a < 1;", 18, "a floating point number"),
        ("&a == 1.0;", 16, "`<`, `>`, `<=` or `>=`"),
        ("1 ~= a;", 15, "an operator between integers"),
        ("a && b == c;", 13, "a test"),
        ("a;", 13, "a test"),
        ("a . 1 == b;", 17, "a string"),
        ("1 . 2 == b;", 17, "strings around the `.`"),
        ("&a % &b < 1.0;", 13, "integers around the `%`"),
        ("(a == b) == c;", 22, "`&&` or `||`"),
        ("-a == 1;", 14, "a number"),
    ] {
        let error = fault_in(conditions);
        assert_eq!((error.column, error.expected.as_str()), (column, expected), "{conditions}");
    }
}

#[test]
fn text_that_breaks_the_grammar_is_refused_with_its_place() {
    for (text, expected) in [
        (
            "Comment: a\n",
            "line 1, column 1: expected an assertion with an Authorizer field, \
                          found none",
        ),
        (
            "KeyNote-Version: 3\nAuthorizer: \"a\"\n",
            "line 1, column 18: expected version 2, \
                          found `3`",
        ),
        (
            "Authorizer:\n",
            "line 1, column 12: expected a string, an attribute, a number or `(`, \
                          found the end of the field",
        ),
        (
            "Authorizer: \"a\" \"b\"\n",
            "line 1, column 17: expected an operator or the end of the \
                          field, found the string `b`",
        ),
        (
            "Authorizer: a\nLicensees: b ||\n  && c\n",
            "line 3, column 3: expected a string, an \
                          attribute, a number or `(`, found `&&`",
        ),
        (
            "Authorizer: a\nLicensees: 3-of(a, b)\n",
            "line 2, column 21: expected at least 3 \
                          principals, found `)`",
        ),
        (
            "Authorizer: a\nLicensees: 0-of(a)\n",
            "line 2, column 12: expected a number from 1, \
                          found `0`",
        ),
        (
            "Authorizer: a\nConditions: b == c\n",
            "line 2, column 19: expected an operator, `->` or \
                          `;`, found the end of the field",
        ),
        ("Authorizer: a\nConditions: (b=c);\n", "line 2, column 15: expected `)`, found `=`"),
        (
            "Authorizer: a\nLocal-Constants: b=\"1\"\n b=\"2\"\n",
            "line 3, column 2: expected each \
                          name once, found `b`",
        ),
        (
            "Authorizer: a\nLocal-Constants: _b=\"1\"\n",
            "line 2, column 18: expected a name that \
                          does not begin with an underscore, found `_b`",
        ),
    ] {
        assert_eq!(fault(text).to_string(), expected);
    }
}

#[test]
fn missing_and_empty_fields_are_told_apart() {
    let read = |text: &str| Assertion::parse(text).unwrap().body().clone();
    let missing = read("Authorizer: a\n");
    assert_eq!((missing.licensees, missing.conditions), (tree::LicenseesField::Missing, None));
    let empty = read("Authorizer: a\nLicensees:\nConditions: # nothing\n");
    assert_eq!((empty.licensees, empty.conditions), (tree::LicenseesField::Empty, Some(vec![])));
}

#[test]
fn each_clause_has_the_number_of_its_first_line() {
    let text = "Authorizer: a\nConditions: true -> {\n\n true;\n };\n true;";
    let error = fault(text);
    assert_eq!((error.line, error.expected.as_str()), (4, "the end of the assertion"));
    let text = text.replace("\n\n", "\n#\n");
    let clauses = Assertion::parse(text).unwrap().body().conditions.clone().unwrap();
    let tree::Consequence::Program(inner) = &clauses[0].outcome else { panic!("{clauses:?}") };
    assert_eq!((clauses[0].line.0, inner[0].line.0, clauses[1].line.0), (2, 4, 6));
}

#[test]
fn ten_megabytes_of_nested_parentheses_are_refused() {
    let nested = format!("Authorizer: \"a\"\nConditions: {}", "(".repeat(10 << 20));
    assert_eq!(fault(&nested).expected, "at most 65536 bytes");
    for symbol in ["(", "!", "-", "$", "true -> {"] {
        let error = fault_in(&symbol.repeat(5000));
        assert_eq!(error.expected, "a nesting that is less deep", "{symbol}");
    }
    let error = fault(&format!("Authorizer: a\nLicensees: {}", "(".repeat(5000)));
    assert_eq!((error.column, error.expected.as_str()), (77, "a nesting that is less deep"));
}

#[test]
fn nesting_up_to_the_limit_is_read_and_printed_again() {
    let depth = limits::DEPTH_MAX;
    for (open, inner, close) in [("(", "a == b", ")"), ("!", "a == b", ""), ("!(", "true", ")")] {
        let depth = depth / open.len();
        let test = format!("{}{inner}{};", open.repeat(depth), close.repeat(depth));
        let text = printed(&test);
        assert_eq!(printed(&text), text);
    }
    let programs = format!("{}true;{}", "true -> {".repeat(depth), "};".repeat(depth));
    assert_eq!(printed(&printed(&programs)), printed(&programs));
}

#[test]
fn long_chains_are_read_without_deep_trees() {
    let test = format!("{}true;", "true && ".repeat(6000));
    assert_eq!(printed(&test), test);
    let sum = format!("0{} == 0;", " + 1".repeat(6000));
    assert_eq!(printed(&sum), sum);
}

#[test]
fn each_limit_is_reached() {
    let tokens = format!("Authorizer: a\nConditions: {}", "1 + ".repeat(limits::TOKENS_MAX / 2));
    assert_eq!(fault(&tokens).expected, "fewer tokens in an assertion");
    let licensees = vec!["a"; limits::LICENSEES_MAX + 1].join("||");
    assert_eq!(
        fault(&format!("Authorizer: a\nLicensees: {licensees}")).expected,
        "fewer licensees"
    );
    let constant = |number| format!(" a{number}=\"\"");
    let constants: String = (0..=limits::CONSTANTS_MAX).map(constant).collect();
    let text = format!("Authorizer: a\nLocal-Constants:{constants}");
    assert_eq!(fault(&text).expected, "fewer names");
}

#[test]
fn texts_of_many_assertions_have_limits_of_their_own() {
    let one = format!("Authorizer: \"a\"\nComment: {}\n", "x".repeat(1000));
    let many = vec![one; limits::TEXT_BYTES_MAX / 1000].join("\n");
    assert!(many.len() > limits::TEXT_BYTES_MAX && Assertion::parse(&many).is_err());
    assert_eq!(Assertion::parse_all(&many).unwrap().len(), limits::TEXT_BYTES_MAX / 1000);
    let long = format!("{many}\nAuthorizer: \"{}\"\n", "x".repeat(limits::TEXT_BYTES_MAX));
    let error = Assertion::parse_all(long).unwrap_err();
    assert_eq!(error.line as usize, many.lines().count() + 2);
    assert_eq!(error.expected, format!("at most {} bytes", limits::TEXT_BYTES_MAX));
    let endless = "# x\n".repeat(limits::FILE_BYTES_MAX / 4 + 1);
    let error = Assertion::parse_all(endless).unwrap_err();
    assert_eq!(error.expected, format!("at most {} bytes", limits::FILE_BYTES_MAX));
}
