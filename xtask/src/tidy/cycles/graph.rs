//! A graph of modules, and its strongly connected components.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The path and line of a use of another module.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct UseLine {
    pub(super) path: String,
    pub(super) line: usize,
}

/// The uses between modules.
#[derive(Default)]
pub(super) struct Graph {
    arrows: BTreeMap<String, BTreeMap<String, BTreeSet<UseLine>>>,
}

impl Graph {
    /// Adds a use.
    pub(super) fn add(&mut self, from: &str, to: &str, at: UseLine) {
        self.arrows.entry(to.to_owned()).or_default();
        let arrows = self.arrows.entry(from.to_owned()).or_default();
        arrows.entry(to.to_owned()).or_default().insert(at);
    }

    /// The sets of modules that can all reach each other; single modules are left out.
    pub(super) fn knots(&self) -> Vec<Vec<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.arrows.keys().map(|from| (from.as_str(), self.reached(from))).collect();
        let mut knots: BTreeSet<Vec<String>> = BTreeSet::new();
        for (from, others) in &reach {
            let is_mutual =
                |other: &&&str| reach.get(**other).is_some_and(|set| set.contains(from));
            let knot: Vec<String> =
                others.iter().filter(is_mutual).map(ToString::to_string).collect();
            knots.extend((knot.len() > 1).then_some(knot));
        }
        knots.into_iter().collect()
    }

    /// The modules that can be reached from a module.
    fn reached<'a>(&'a self, from: &str) -> BTreeSet<&'a str> {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&str> = self.next(from).collect();
        while let Some(module) = open.pop() {
            if seen.insert(module) {
                open.extend(self.next(module));
            }
        }
        seen
    }

    fn next<'a>(&'a self, from: &str) -> impl Iterator<Item = &'a str> {
        self.arrows.get(from).into_iter().flat_map(|to| to.keys().map(String::as_str))
    }

    /// The uses between modules of a set.
    pub(super) fn arrows_within<'a>(
        &'a self,
        knot: &'a [String],
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a BTreeSet<UseLine>)> {
        let arrows = knot.iter().filter_map(|from| Some((from, self.arrows.get(from)?)));
        arrows.flat_map(move |(from, to)| {
            let within = to.iter().filter(|(to, _)| knot.contains(to));
            within.map(move |(to, places)| (from.as_str(), to.as_str(), places))
        })
    }

    /// The shortest path from a module of the set back to itself, with a place for each use.
    pub(super) fn shortest_circle<'a>(
        &'a self,
        knot: &'a [String],
    ) -> Vec<(&'a str, &'a str, &'a UseLine)> {
        let circles = knot.iter().map(|from| self.circle(from));
        let shortest = circles.filter(|circle| !circle.is_empty()).min_by_key(Vec::len);
        let steps = shortest.unwrap_or_default().into_iter();
        steps
            .filter_map(|(from, to)| {
                let place = self.arrows.get(from)?.get(to)?.first()?;
                Some((from, to, place))
            })
            .collect()
    }

    /// The shortest path from a module back to itself; empty if there is none.
    fn circle<'a>(&'a self, start: &'a str) -> Vec<(&'a str, &'a str)> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut open = VecDeque::from([start]);
        while let Some(from) = open.pop_front().filter(|_| !came_from.contains_key(start)) {
            for to in self.next(from) {
                if !came_from.contains_key(to) {
                    came_from.insert(to, from);
                    open.push_back(to);
                }
            }
        }
        let mut steps = Vec::new();
        let mut to = start;
        while let Some(from) = came_from.get(to) {
            steps.insert(0, (*from, to));
            to = from;
            if to == start {
                break;
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(arrows: &[(&str, &str)]) -> Graph {
        let mut graph = Graph::default();
        for (line, (from, to)) in (1..).zip(arrows) {
            graph.add(from, to, UseLine { path: "x".into(), line });
        }
        graph
    }

    #[test]
    fn knots_are_told_apart() {
        let arrows = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
        let graph = graph(&arrows);
        assert_eq!(graph.knots(), [vec!["a", "b", "c"], vec!["d", "e"]]);
        assert_eq!(graph.arrows_within(&graph.knots()[1]).count(), 2);
    }

    #[test]
    fn the_shortest_circle_of_a_knot_is_shown() {
        let graph = graph(&[("a", "b"), ("b", "c"), ("c", "a"), ("c", "b")]);
        let knots = graph.knots();
        let circle = graph.shortest_circle(&knots[0]);
        let steps: Vec<_> = circle.iter().map(|(from, to, at)| (*from, *to, at.line)).collect();
        assert_eq!(steps, [("b", "c", 2), ("c", "b", 4)]);
    }
}
