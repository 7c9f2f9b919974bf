use super::table::{Argument, Choice, Draft, Effect, OPTIONS, Verdict};
use crate::finding::Findings;
use crate::offer::Terms;
use comity_idmap::Squash;

use crate::Place;

/// An option as it was written.
#[derive(Debug)]
pub(crate) struct Item {
    name: String,
    value: Option<String>,
    place: Place,
}

impl Item {
    pub(crate) fn new(text: &str, place: Place) -> Self {
        match text.split_once('=') {
            Some((name, value)) => Self { name: name.into(), value: Some(value.into()), place },
            None => Self { name: text.into(), value: None, place },
        }
    }
}

/// An option that is honoured, with its value.
#[derive(Debug)]
pub(crate) struct Given {
    option: &'static Choice,
    effect: Effect,
    value: String,
    place: Place,
}

/// Looks up the options of one list. `None` if any of them is not honoured or contradicts another.
pub(crate) fn given(items: Vec<Item>, findings: &mut Findings) -> Option<Vec<Given>> {
    let mut list: Vec<Given> = Vec::with_capacity(items.len());
    let mut fine = true;
    for item in items {
        let place = item.place.clone();
        match look_up(item) {
            Err(what) => {
                findings.error(&place, what);
                fine = false;
            }
            Ok(given) => {
                fine &= fits(&given, &list, findings);
                list.push(given);
            }
        }
    }
    fine.then_some(list)
}

/// The terms that a client's own options make together with the default ones of its line.
pub(crate) fn terms(defaults: &[Given], own: &[Given], findings: &mut Findings) -> Option<Terms> {
    let mut draft = Draft { root_squash: true, ..Draft::default() };
    let overridden = |given: &&Given| own.iter().all(|own| own.option.about != given.option.about);
    let mut fine = true;
    for given in defaults.iter().filter(overridden).chain(own) {
        if let Err(what) = (given.effect)(&mut draft, &given.value) {
            findings.error(&given.place, format!("option {}: {what}", given.option.name));
            fine = false;
        }
    }
    draft.terms.rules.ids.squash = match (draft.all_squash, draft.root_squash) {
        (true, _) => Squash::All,
        (false, true) => Squash::Root,
        (false, false) => Squash::None,
    };
    fine.then_some(draft.terms)
}

fn look_up(item: Item) -> Result<Given, String> {
    let Item { name, value, place } = item;
    let Some(option) = OPTIONS.iter().find(|option| option.name == name) else {
        return Err(format!("unknown option {name:?}: docs/exports.md lists those there are"));
    };
    let effect = match option.verdict {
        Verdict::Honoured(effect) => effect,
        Verdict::Refused => return Err(format!("option {name} is refused: {}", option.note)),
    };
    match (option.argument, value.as_deref()) {
        (Argument::None, Some(_)) => return Err(format!("option {name} takes no value")),
        (Argument::Needed(what), None | Some("")) | (Argument::Possible(what), Some("")) => {
            return Err(format!("option {name} without a value: expected {name}={what}"));
        }
        _ => {}
    }
    Ok(Given { option, effect, value: value.unwrap_or_default(), place })
}

/// Whether an option goes with those before it in the same list.
fn fits(given: &Given, list: &[Given], findings: &mut Findings) -> bool {
    let Some(other) = list.iter().find(|other| other.option.about == given.option.about) else {
        return true;
    };
    let (name, same) = (given.option.name, other.option.name);
    if same == name && other.value == given.value {
        findings.warning(&given.place, format!("option {name} stands twice"));
        return true;
    }
    let what = match name {
        _ if same != name => format!("option {name} contradicts {same}"),
        "sec" => "option sec stands twice: rules by flavor are not kept, name all in one".into(),
        _ => format!("option {name} stands twice with different values"),
    };
    findings.error(&given.place, what);
    false
}
