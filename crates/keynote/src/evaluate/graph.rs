//! The delegation graph, from the requesters to `POLICY` (RFC 2704, section 5.3).
//!
//! The values of principals are the least fixpoint of the rules of section 5.3: requesters begin at
//! the highest value, all others at the lowest, and assertions raise their authorizers until
//! nothing changes. Values only rise and have a maximum, so cycles of assertions terminate.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use crate::prepared::{Licensed, LicenseesOf, Named, PreparedAssertion};
use crate::principal::Principal;

use super::fault::Fault;
use super::interpreter::Interpreter;
use super::meter::Exhausted;
use super::scale::Scale;

/// A principal's index in the table of values.
type PrincipalIndex = usize;

/// The values of principals found so far.
pub(super) struct Graph<'t, V> {
    slots: HashMap<Cow<'t, Principal>, PrincipalIndex>,
    values: Vec<V>,
    /// For each principal, the assertions that name it as a licensee.
    licensed_by: Vec<Vec<usize>>,
    links: Vec<Link<'t, V>>,
}

/// An assertion in the graph.
pub(super) struct Link<'t, V> {
    pub(super) assertion: &'t PreparedAssertion,
    /// The index of its authorizer; `None` if the name could not be evaluated.
    authorizer: Option<PrincipalIndex>,
    /// The indexes of the licensees in the order of the text.
    licensees: Vec<Option<PrincipalIndex>>,
    /// The value of the conditions, if it was needed.
    conditions: Option<V>,
}

impl<'t, V: Copy + PartialEq> Graph<'t, V> {
    /// Evaluates the assertions that matter to the requesters of the query.
    pub(super) fn solve<S: Scale<Value = V>>(
        interpreter: &mut Interpreter<'t, S>,
        assertions: impl IntoIterator<Item = &'t PreparedAssertion>,
    ) -> Result<Self, Exhausted> {
        let mut graph = Self {
            slots: HashMap::new(),
            values: Vec::new(),
            licensed_by: Vec::new(),
            links: Vec::new(),
        };
        let (none, all) = (interpreter.scale.none(), interpreter.scale.all());
        for requester in interpreter.requesters {
            let slot = graph.slot(Cow::Borrowed(requester), none);
            graph.set(slot, all);
        }
        for assertion in assertions {
            graph.add(interpreter, assertion)?;
        }
        graph.propagate(interpreter)?;
        Ok(graph)
    }

    /// The value of a principal; `None` if no assertion names it.
    pub(super) fn value(&self, principal: &Principal) -> Option<V> {
        self.values.get(*self.slots.get(principal)?).copied()
    }

    /// All named principals with their values.
    pub(super) fn into_values(self) -> impl Iterator<Item = (Cow<'t, Principal>, V)> {
        let values = self.values;
        let slots = self.slots.into_iter();
        slots.filter_map(move |(principal, slot)| Some((principal, *values.get(slot)?)))
    }

    /// The assertions in the given order.
    pub(super) fn links(&self) -> &[Link<'t, V>] {
        &self.links
    }

    fn slot(&mut self, principal: Cow<'t, Principal>, none: V) -> PrincipalIndex {
        let next = self.values.len();
        let slot = *self.slots.entry(principal).or_insert(next);
        if slot == next {
            self.values.push(none);
            self.licensed_by.push(Vec::new());
        }
        slot
    }

    fn set(&mut self, slot: PrincipalIndex, value: V) {
        self.values.get_mut(slot).into_iter().for_each(|held| *held = value);
    }

    fn add<S: Scale<Value = V>>(
        &mut self,
        interpreter: &mut Interpreter<'t, S>,
        assertion: &'t PreparedAssertion,
    ) -> Result<(), Exhausted> {
        let authorizer = self.named(interpreter, assertion, assertion.authorizer_name())?;
        let mut names = Vec::new();
        if let Licensed::These(licensees) = assertion.licensed() {
            licensees.names(&mut names);
        }
        let place = self.links.len();
        let mut licensees = Vec::with_capacity(names.len());
        for name in names {
            let slot = self.named(interpreter, assertion, name)?;
            licensees.push(slot);
            let list = slot.and_then(|slot| self.licensed_by.get_mut(slot));
            list.into_iter().for_each(|list| list.push(place));
        }
        self.links.push(Link { assertion, authorizer, licensees, conditions: None });
        Ok(())
    }

    fn named<S: Scale<Value = V>>(
        &mut self,
        interpreter: &mut Interpreter<'t, S>,
        assertion: &'t PreparedAssertion,
        name: &'t Named,
    ) -> Result<Option<PrincipalIndex>, Exhausted> {
        let none = interpreter.scale.none();
        interpreter.meter.charge(1)?;
        let principal = match name {
            Named::Always(principal) => Cow::Borrowed(principal),
            Named::ByQuery(expression) => match interpreter.string(assertion, expression) {
                Ok(name) => {
                    interpreter.meter.charge(name.len())?;
                    Cow::Owned(Principal::named(&name))
                }
                Err(Fault::Runtime(_)) => return Ok(None),
                Err(Fault::Exhausted) => return Err(Exhausted),
            },
        };
        Ok(Some(self.slot(principal, none)))
    }

    /// Evaluates an assertion again whenever the value of one of its licensees has risen.
    fn propagate<S: Scale<Value = V>>(
        &mut self,
        interpreter: &mut Interpreter<'t, S>,
    ) -> Result<(), Exhausted> {
        let mut queue: VecDeque<usize> = (0..self.links.len()).collect();
        let mut is_queued = vec![true; self.links.len()];
        while let Some(place) = queue.pop_front() {
            is_queued.get_mut(place).into_iter().for_each(|is_queued| *is_queued = false);
            let Some(slot) = self.raise(interpreter, place)? else { continue };
            for place in self.licensed_by.get(slot).into_iter().flatten() {
                let flag = is_queued.get_mut(*place);
                if flag.is_some_and(|is_queued| !std::mem::replace(is_queued, true)) {
                    queue.push_back(*place);
                }
            }
        }
        Ok(())
    }

    /// Evaluates an assertion; returns the index of its authorizer if its value has risen.
    fn raise<S: Scale<Value = V>>(
        &mut self,
        interpreter: &mut Interpreter<'t, S>,
        place: usize,
    ) -> Result<Option<PrincipalIndex>, Exhausted> {
        let scale = interpreter.scale;
        let Some(link) = self.links.get(place) else { return Ok(None) };
        let Some(slot) = link.authorizer else { return Ok(None) };
        interpreter.meter.charge(1 + link.licensees.len())?;
        let licensees = link.licensees(scale, &self.values);
        if licensees == scale.none() {
            return Ok(None);
        }
        let conditions = match link.conditions {
            Some(value) => value,
            None => interpreter.conditions(link.assertion)?,
        };
        self.links.get_mut(place).into_iter().for_each(|link| link.conditions = Some(conditions));
        let before = self.values.get(slot).copied().unwrap_or(scale.none());
        let value = scale.either(before, scale.both(conditions, licensees));
        self.set(slot, value);
        Ok((value != before).then_some(slot))
    }

    /// The value of an assertion's Licensees field.
    pub(super) fn licensees<S: Scale<Value = V>>(&self, scale: &S, link: &Link<'t, V>) -> V {
        link.licensees(scale, &self.values)
    }
}

impl<V: Copy> Link<'_, V> {
    fn licensees<S: Scale<Value = V>>(&self, scale: &S, values: &[V]) -> V {
        match self.assertion.licensed() {
            Licensed::Everybody => scale.all(),
            Licensed::Nobody => scale.none(),
            Licensed::These(licensees) => {
                let of =
                    |slot: &Option<PrincipalIndex>| slot.and_then(|slot| values.get(slot).copied());
                let values = self.licensees.iter().map(|slot| of(slot).unwrap_or(scale.none()));
                value_of(licensees, scale, &mut values.into_iter())
            }
        }
    }
}

/// The value of an expression over principals; `values` are those of the principals in the order of
/// the text.
fn value_of<S: Scale>(
    licensees: &LicenseesOf,
    scale: &S,
    values: &mut impl Iterator<Item = S::Value>,
) -> S::Value {
    match licensees {
        LicenseesOf::One(_) => values.next().unwrap_or(scale.none()),
        LicenseesOf::All(parts) => parts.iter().fold(scale.all(), |all, part| {
            let value = value_of(part, scale, values);
            scale.both(all, value)
        }),
        LicenseesOf::Any(parts) => parts.iter().fold(scale.none(), |any, part| {
            let value = value_of(part, scale, values);
            scale.either(any, value)
        }),
        LicenseesOf::AtLeast(least, principals) => {
            let values: Vec<_> = values.take(principals.len()).collect();
            scale.of_at_least(*least, &values)
        }
    }
}
