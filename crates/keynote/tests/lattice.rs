//! The evaluators on graphs of assertions, compared with a brute-force search.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeSet;

use comity_keynote::{Exhausted, OrderedValues, PolicyAssertion, Principal, Query, Rights, limits};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// The principals of a graph. The rights of the first one are asked for.
const NAMES: [&str; 6] = ["POLICY", "a", "b", "c", "d", "e"];

#[derive(Debug, Clone)]
enum Licensees {
    One(usize),
    All(Vec<Licensees>),
    Any(Vec<Licensees>),
    AtLeast(u32, Vec<usize>),
}

#[derive(Debug, Clone)]
struct Link {
    authorizer: usize,
    licensees: Licensees,
    value: Rights,
}

impl Licensees {
    fn text(&self) -> String {
        let joined = |parts: &[Self], symbol: &str| {
            let parts: Vec<String> = parts.iter().map(Self::text).collect();
            format!("({})", parts.join(symbol))
        };
        match self {
            Self::One(name) => format!("\"{}\"", NAMES[*name]),
            Self::All(parts) => joined(parts, " && "),
            Self::Any(parts) => joined(parts, " || "),
            Self::AtLeast(least, names) => {
                let names: Vec<String> = names.iter().map(|name| Self::One(*name).text()).collect();
                format!("{least}-of({})", names.join(", "))
            }
        }
    }

    fn are_met(&self, is_met: &mut impl FnMut(usize) -> bool) -> bool {
        match self {
            Self::One(name) => is_met(*name),
            Self::All(parts) => parts.iter().all(|part| part.are_met(is_met)),
            Self::Any(parts) => parts.iter().any(|part| part.are_met(is_met)),
            Self::AtLeast(least, names) => {
                names.iter().filter(|name| is_met(**name)).count() >= *least as usize
            }
        }
    }
}

fn assertions(links: &[Link]) -> Vec<PolicyAssertion> {
    let text = |link: &Link| {
        format!(
            "Authorizer: \"{}\"\nLicensees: {}\nConditions: true -> \"{}\";\n",
            NAMES[link.authorizer],
            link.licensees.text(),
            link.value
        )
    };
    let texts: Vec<String> = links.iter().map(text).collect();
    PolicyAssertion::parse_all(texts.join("\n")).unwrap()
}

fn principals(names: &BTreeSet<usize>) -> Vec<Principal> {
    names.iter().map(|name| Principal::named(NAMES[*name])).collect()
}

fn rights(links: &[Link], requesters: &BTreeSet<usize>) -> Rights {
    let (policies, requesters) = (assertions(links), principals(requesters));
    let query = Query { requesters: &requesters, attributes: &[] };
    query.rights(policies.iter().map(PolicyAssertion::prepared)).unwrap().policy()
}

/// Returns whether some tree of assertions proves one right. Tries all trees that have no principal
/// twice on a branch.
fn is_proved(
    links: &[Link],
    requesters: &BTreeSet<usize>,
    right: Rights,
    (principal, above): (usize, &BTreeSet<usize>),
) -> bool {
    if requesters.contains(&principal) {
        return true;
    }
    let mut above = above.clone();
    if !above.insert(principal) {
        return false;
    }
    links.iter().any(|link| {
        link.authorizer == principal
            && link.value.contains(right)
            && link
                .licensees
                .are_met(&mut |name| is_proved(links, requesters, right, (name, &above)))
    })
}

fn by_brute_force(links: &[Link], requesters: &BTreeSet<usize>) -> Rights {
    let rights = Rights::LETTERS.iter().map(|(_, right)| *right);
    rights
        .filter(|right| is_proved(links, requesters, *right, (0, &BTreeSet::new())))
        .fold(Rights::NONE, Rights::union)
}

fn licensees() -> BoxedStrategy<Licensees> {
    let one = (0..NAMES.len()).prop_map(Licensees::One);
    let threshold = vec(0..NAMES.len(), 1..4).prop_flat_map(|names| {
        let least = 1..=names.len() as u32;
        least.prop_map(move |least| Licensees::AtLeast(least, names.clone()))
    });
    let leaf = prop_oneof![3 => one, 1 => threshold];
    let inner = leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Licensees::All),
            vec(inner, 2..4).prop_map(Licensees::Any),
        ]
    });
    inner.boxed()
}

fn links(values: impl Strategy<Value = Rights> + 'static) -> impl Strategy<Value = Vec<Link>> {
    let link = (0..NAMES.len(), licensees(), values);
    let link =
        link.prop_map(|(authorizer, licensees, value)| Link { authorizer, licensees, value });
    vec(link, 0..7)
}

fn requesters() -> impl Strategy<Value = BTreeSet<usize>> {
    proptest::collection::btree_set(1..NAMES.len(), 1..3)
}

/// Values, each of which contains the earlier ones.
const CHAIN: [&str; 4] = ["none", "r", "rw", "rwxcda"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn rights_are_those_that_some_chain_proves(
        links in links((0..64_u8).prop_map(Rights::from_bits)),
        requesters in requesters(),
    ) {
        prop_assert_eq!(rights(&links, &requesters), by_brute_force(&links, &requesters));
    }

    #[test]
    fn both_evaluators_agree_where_the_values_form_a_chain(
        links in links(select(CHAIN.map(|text| text.parse().unwrap()).to_vec())),
        requesters in requesters(),
    ) {
        let policies = assertions(&links);
        let principals = principals(&requesters);
        let query = Query { requesters: &principals, attributes: &[] };
        let values = OrderedValues::new(&CHAIN).unwrap();
        let ordered = query.ordered(&values, policies.iter().map(PolicyAssertion::prepared));
        let ordered = values.name(ordered.unwrap().policy());
        prop_assert_eq!(rights(&links, &requesters).to_string(), ordered);
    }

    /// RFC 2704, section 2.
    #[test]
    fn a_further_assertion_never_removes_a_right(
        links in links((0..64_u8).prop_map(Rights::from_bits)),
        requesters in requesters(),
    ) {
        let all = rights(&links, &requesters);
        for without in 0..links.len() {
            let mut fewer = links.clone();
            fewer.remove(without);
            prop_assert!(all.contains(rights(&fewer, &requesters)));
        }
    }

    #[test]
    fn the_order_of_the_assertions_does_not_matter(
        links in links((0..64_u8).prop_map(Rights::from_bits)),
        requesters in requesters(),
    ) {
        let reversed: Vec<Link> = links.iter().rev().cloned().collect();
        prop_assert_eq!(rights(&links, &requesters), rights(&reversed, &requesters));
    }
}

#[test]
fn cycles_of_assertions_end_and_give_nothing_by_themselves() {
    let link = |authorizer, licensee, value: &str| Link {
        authorizer,
        licensees: Licensees::One(licensee),
        value: value.parse().unwrap(),
    };
    let circle = [link(0, 1, "rwx"), link(1, 2, "rwx"), link(2, 1, "rwx"), link(2, 2, "rwx")];
    assert_eq!(rights(&circle, &BTreeSet::from([3])), Rights::NONE);
    let mut entered = circle.to_vec();
    entered.push(link(2, 3, "rx"));
    assert_eq!(rights(&entered, &BTreeSet::from([3])).to_string(), "rx");
}

#[test]
fn every_principal_of_a_chain_has_its_value() {
    let text = "Authorizer: \"POLICY\"\nLicensees: \"alice\"\nConditions: true -> \"rw\";\n\n\
                Authorizer: \"alice\"\nLicensees: \"bob\"\nConditions: true -> \"rx\";\n";
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let bob = [Principal::named("bob")];
    let query = Query { requesters: &bob, attributes: &[] };
    let evaluation = query.rights(policies.iter().map(PolicyAssertion::prepared)).unwrap();
    assert_eq!(evaluation.value(&Principal::named("alice")).to_string(), "rx");
    assert_eq!(evaluation.value(&bob[0]), Rights::ALL);
    assert_eq!(evaluation.value(&Principal::named("eve")), Rights::NONE);
    let mut values: Vec<String> =
        evaluation.into_values().map(|(name, value)| format!("{name} {value}")).collect();
    values.sort();
    assert_eq!(values, ["POLICY r", "alice rx", "bob rwxcda"]);
}

#[test]
fn long_chains_and_many_licensees_are_evaluated_within_the_limit() {
    // The assertions are in the worst order.
    let chain: String = (0..5000)
        .map(|at| {
            format!(
                "Authorizer: \"k{}\"\nLicensees: \"k{at}\"\nConditions: true -> \"rx\";\n\n",
                at + 1
            )
        })
        .rev()
        .collect();
    let text = format!("{chain}\nAuthorizer: \"POLICY\"\nLicensees: \"k5000\"\n");
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let first = [Principal::named("k0")];
    let query = Query { requesters: &first, attributes: &[] };
    let evaluation = query.rights(policies.iter().map(PolicyAssertion::prepared));
    assert_eq!(evaluation.unwrap().policy().to_string(), "rx");
}

#[test]
fn an_evaluation_that_takes_too_much_work_gives_nothing_and_says_so() {
    let long = "x".repeat(limits::STRING_BYTES_MAX / 2);
    let tests = "a . a == a -> \"r\"; ".repeat(200);
    let text = format!("Authorizer: \"POLICY\"\nConditions: true -> \"r\"; {tests}\n");
    let policies = PolicyAssertion::parse_all(text).unwrap();
    let attributes = [("a", long.as_str())];
    let query = Query { requesters: &[], attributes: &attributes };
    let result = query.rights(policies.iter().map(PolicyAssertion::prepared));
    assert_eq!(result.err(), Some(Exhausted));
    let values = OrderedValues::new(&["no", "yes"]).unwrap();
    let result = query.ordered(&values, policies.iter().map(PolicyAssertion::prepared));
    assert_eq!(result.err(), Some(Exhausted));
}
