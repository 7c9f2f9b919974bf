//! Regular expressions of POSIX, compared with a matcher that tries all ways to match.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use comity_keynote::{PolicyAssertion, Query, limits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// An expression over the characters of the texts: a, b, a dash and a line break.
#[derive(Debug, Clone)]
enum Expression {
    Character(char),
    Any,
    /// `[...]` or `[^...]`.
    Set(bool, Vec<char>),
    Sequence(Vec<Expression>),
    Alternatives(Vec<Expression>),
    /// A number of repetitions between a minimum and a maximum, if there is one.
    Repeated(Box<Expression>, usize, Option<usize>),
    Begin,
    End,
}

use Expression::{Alternatives, Any, Begin, Character, End, Repeated, Sequence, Set};

const CHARACTERS: [char; 4] = ['a', 'b', '-', '\n'];

impl Expression {
    /// The expression in POSIX syntax; single characters are in parentheses.
    fn text(&self) -> String {
        match self {
            Character(char) => format!("({char})"),
            Any => "(.)".into(),
            Set(is_negated, chars) => {
                // A dash at the end stands for itself.
                let mut chars = chars.clone();
                chars.sort_by_key(|char| *char == '-');
                let sign = if *is_negated { "^" } else { "" };
                format!("([{sign}{}])", chars.into_iter().collect::<String>())
            }
            Sequence(parts) => {
                format!("({})", parts.iter().map(Self::text).collect::<String>())
            }
            Alternatives(parts) => {
                format!("({})", parts.iter().map(Self::text).collect::<Vec<_>>().join("|"))
            }
            Repeated(part, 0, None) => format!("({}*)", part.text()),
            Repeated(part, 1, None) => format!("({}+)", part.text()),
            Repeated(part, 0, Some(1)) => format!("({}?)", part.text()),
            Repeated(part, least, None) => format!("({}{{{least},}})", part.text()),
            Repeated(part, least, Some(most)) if least == most => {
                format!("({}{{{least}}})", part.text())
            }
            Repeated(part, least, Some(most)) => format!("({}{{{least},{most}}})", part.text()),
            Begin => "(^)".into(),
            End => "($)".into(),
        }
    }

    /// The positions of a text at which a match that begins at `from` can end.
    fn ends(&self, text: &[char], from: usize) -> BTreeSet<usize> {
        let one =
            |matches: bool| if matches { BTreeSet::from([from + 1]) } else { BTreeSet::new() };
        let here = |matches: bool| if matches { BTreeSet::from([from]) } else { BTreeSet::new() };
        match self {
            Character(char) => one(text.get(from) == Some(char)),
            Any => one(from < text.len()),
            Set(is_negated, chars) => {
                one(text.get(from).is_some_and(|char| chars.contains(char) != *is_negated))
            }
            Sequence(parts) => parts.iter().fold(BTreeSet::from([from]), |places, part| {
                places.iter().flat_map(|place| part.ends(text, *place)).collect()
            }),
            Alternatives(parts) => parts.iter().flat_map(|part| part.ends(text, from)).collect(),
            Repeated(part, least, most) => {
                let mut all = BTreeSet::new();
                let mut places = BTreeSet::from([from]);
                // More repetitions than there are characters match nothing new.
                for count in 0..=most.unwrap_or(least + text.len()) {
                    if count >= *least {
                        all.extend(&places);
                    }
                    places = places.iter().flat_map(|place| part.ends(text, *place)).collect();
                }
                all
            }
            Begin => here(from == 0),
            End => here(from == text.len()),
        }
    }

    fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        (0..=text.len()).any(|from| !self.ends(&text, from).is_empty())
    }
}

fn expressions() -> impl Strategy<Value = Expression> {
    let set = (any::<bool>(), proptest::sample::subsequence(CHARACTERS.to_vec(), 1..=3));
    let leaf = prop_oneof![
        6 => select(CHARACTERS.to_vec()).prop_map(Character),
        1 => Just(Any),
        2 => set.prop_map(|(is_negated, chars)| Set(is_negated, chars)),
        1 => Just(Begin),
        1 => Just(End),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let repeated = (inner.clone(), 0..3_usize, prop::option::of(0..2_usize));
        prop_oneof![
            3 => vec(inner.clone(), 1..4).prop_map(Sequence),
            2 => vec(inner, 1..3).prop_map(Alternatives),
            2 => repeated.prop_map(|(part, least, more)| {
                Repeated(Box::new(part), least, more.map(|more| least + more))
            }),
        ]
    })
}

/// Returns whether a text matches. The pattern is the value of an attribute, so that it needs no
/// escapes.
fn is_match(pattern: &str, text: &str) -> bool {
    let policy = "Authorizer: \"POLICY\"\nConditions: text ~= pattern -> \"r\";\n";
    let policies = PolicyAssertion::parse_all(policy).unwrap();
    let attributes = [("text", text), ("pattern", pattern)];
    let query = Query { requesters: &[], attributes: &attributes };
    !query.rights([policies[0].prepared()]).unwrap().policy().is_none()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_text_matches_if_some_way_of_matching_exists(
        expression in expressions(),
        text in vec(select(CHARACTERS.to_vec()), 0..6),
    ) {
        let pattern = expression.text();
        // Patterns with more groups than the limit are invalid.
        prop_assume!(pattern.matches('(').count() <= limits::REGEX_GROUPS_MAX);
        let text: String = text.into_iter().collect();
        let expected = expression.matches(&text);
        prop_assert_eq!(is_match(&pattern, &text), expected, "{} {:?}", pattern, text);
    }

    #[test]
    fn an_escaped_text_is_found_where_it_is(
        before in "[ -~]{0,4}",
        wanted in "[ -~]{1,4}",
        other in "[ -~]{0,8}",
    ) {
        let escape = |char: char| match char {
            letter if letter.is_ascii_alphanumeric() || letter == ' ' => letter.to_string(),
            other => format!("\\{other}"),
        };
        let pattern: String = wanted.chars().map(escape).collect();
        let all = [before, wanted.clone(), other.clone()].concat();
        prop_assert!(is_match(&pattern, &all));
        prop_assert_eq!(is_match(&pattern, &other), other.contains(&wanted));
        prop_assert_eq!(is_match(&format!("^{pattern}$"), &other), other == wanted);
    }

    #[test]
    fn random_patterns_are_read_or_refused_without_a_panic(
        pattern in "[a(|)*+?{}0-9,.\\[\\]^$:=\\\\-]{0,12}",
        text in "[a0-9]{0,8}",
    ) {
        let _ = is_match(&pattern, &text);
    }
}

#[test]
fn each_limit_of_a_pattern_is_reached() {
    let groups = |count: usize| "(a)?".repeat(count);
    assert!(is_match(&groups(limits::REGEX_GROUPS_MAX), ""));
    assert!(!is_match(&groups(limits::REGEX_GROUPS_MAX + 1), ""));
    let characters = |count: usize| format!("^{}", "a?".repeat(count));
    // Repetitions count as often as they are allowed.
    let intervals = |inner, outer| format!("^(a{{0,{inner}}}){{{outer}}}");
    assert!(is_match(&intervals(16, limits::REGEX_WEIGHT_MAX / 16), ""));
    assert!(!is_match(&intervals(16, limits::REGEX_WEIGHT_MAX / 16 + 1), ""));
    assert!(is_match(&characters(limits::REGEX_WEIGHT_MAX), ""));
    assert!(!is_match(&characters(limits::REGEX_WEIGHT_MAX + 1), ""));
}
