//! Queries: the compliance value that follows from assertions for an action (RFC 2704, section 5).

mod arithmetic;
mod explain;
mod fault;
mod graph;
mod interpreter;
mod meter;
mod scale;
mod validity;

use std::borrow::Cow;

use crate::attributes::Attributes;
use crate::prepared::PreparedAssertion;
use crate::principal::Principal;
use crate::rights::Rights;

use graph::Graph;
use interpreter::Interpreter;
use scale::{RightsScale, Scale};

pub use explain::{ClauseReport, LinkReport, Reason};
pub use fault::RuntimeError;
pub use meter::Exhausted;
pub use scale::OrderedValues;
pub use validity::{NOW, Validity};

/// An action and the principals that request it together.
#[derive(Clone, Copy)]
pub struct Query<'t> {
    /// The requesters (section 5.1.1).
    pub requesters: &'t [Principal],
    /// The attributes of the action (section 3).
    pub attributes: &'t dyn Attributes,
}

impl<'t> Query<'t> {
    /// Evaluates sets of rights. Along a chain of assertions they are intersected, over several
    /// chains united; `K-of` gives the rights that at least K of the licensees have.
    ///
    /// A clause gives the rights that its value names, such as `rwx`. A value with any other letter
    /// gives none, and a clause without a value gives all.
    ///
    /// # Errors
    /// The assertions exceed the evaluation limit, so nothing follows from them.
    ///
    /// # Errors
    /// If the assertions take too much work, so that nothing follows from them.
    pub fn rights(
        &self,
        assertions: impl IntoIterator<Item = &'t PreparedAssertion>,
    ) -> Result<Evaluation<'t, Rights>, Exhausted> {
        self.evaluate(&RightsScale, assertions)
    }

    /// Evaluates positions in an order of values, as section 5.3 defines.
    ///
    /// # Errors
    /// The assertions exceed the evaluation limit, so nothing follows from them.
    pub fn ordered(
        &self,
        values: &'t OrderedValues<'t>,
        assertions: impl IntoIterator<Item = &'t PreparedAssertion>,
    ) -> Result<Evaluation<'t, usize>, Exhausted> {
        self.evaluate(values, assertions)
    }

    /// Evaluates as [`Query::rights`] does, and reports for each assertion, in the given order, why
    /// it gives its rights.
    ///
    /// # Errors
    /// The assertions exceed the evaluation limit, so nothing follows from them.
    pub fn explain(
        &self,
        assertions: impl IntoIterator<Item = &'t PreparedAssertion>,
    ) -> Result<(Evaluation<'t, Rights>, Vec<LinkReport>), Exhausted> {
        let mut interpreter = Interpreter::new(&RightsScale, self.attributes, self.requesters);
        let graph = Graph::solve(&mut interpreter, assertions)?;
        let validity = interpreter.now;
        let mut interpreter = Interpreter::new(&RightsScale, self.attributes, self.requesters);
        let reports = explain::reports(&mut interpreter, &graph)?;
        Ok((Evaluation::new(graph, validity, Rights::NONE), reports))
    }

    fn evaluate<S: Scale>(
        &self,
        scale: &'t S,
        assertions: impl IntoIterator<Item = &'t PreparedAssertion>,
    ) -> Result<Evaluation<'t, S::Value>, Exhausted> {
        let mut interpreter = Interpreter::new(scale, self.attributes, self.requesters);
        let graph = Graph::solve(&mut interpreter, assertions)?;
        Ok(Evaluation::new(graph, interpreter.now, scale.none()))
    }
}

/// The result of a query.
pub struct Evaluation<'t, V> {
    graph: Graph<'t, V>,
    none: V,
    reads_now: bool,
    validity: Validity,
}

impl<'t, V: Copy + PartialEq> Evaluation<'t, V> {
    fn new(graph: Graph<'t, V>, now: validity::NowUse, none: V) -> Self {
        Self { graph, none, reads_now: now.is_read(), validity: now.validity() }
    }

    /// The compliance value of the query: that of the principal `POLICY`.
    #[must_use]
    pub fn policy(&self) -> V {
        self.value(&Principal::policy())
    }

    /// The compliance value of a principal: the rights that it gives to the requesters, directly or
    /// through other principals.
    #[must_use]
    pub fn value(&self, principal: &Principal) -> V {
        self.graph.value(principal).unwrap_or(self.none)
    }

    /// The principals that give the requesters any right, including the requesters, with their
    /// values, in any order.
    pub fn into_values(self) -> impl Iterator<Item = (Cow<'t, Principal>, V)> {
        let none = self.none;
        self.graph.into_values().filter(move |(_, value)| *value != none)
    }

    /// Returns whether an evaluated condition has read the attribute `now`.
    #[must_use]
    pub const fn reads_now(&self) -> bool {
        self.reads_now
    }

    /// The time for which the values are valid, if no other attribute changes.
    #[must_use]
    pub const fn validity(&self) -> &Validity {
        &self.validity
    }
}
