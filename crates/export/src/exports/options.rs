use std::collections::HashSet;

use super::idmap_options::IdmapOptions;
use super::table::{Argument, Choice, Draft, Effect, OPTIONS, Verdict};
use crate::diagnostic::Diagnostics;
use crate::export_spec::Terms;
use comity_idmap::Squash;

use crate::{Location, RuleSource};

/// An option as it was written.
#[derive(Debug)]
pub(crate) struct Item {
    name: String,
    value: Option<String>,
    place: Location,
}

impl Item {
    pub(crate) fn new(text: &str, place: Location) -> Self {
        match text.split_once('=') {
            Some((name, value)) => Self { name: name.into(), value: Some(value.into()), place },
            None => Self { name: text.into(), value: None, place },
        }
    }
}

/// A supported option, with its value.
#[derive(Debug)]
pub(crate) struct Given {
    option: &'static Choice,
    effect: Effect,
    value: String,
    place: Location,
}

/// Looks up the options of one list. `None` if any of them is not supported or contradicts another.
pub(crate) fn given(items: Vec<Item>, diagnostics: &mut Diagnostics) -> Option<Vec<Given>> {
    let mut list: Vec<Given> = Vec::with_capacity(items.len());
    let mut fine = true;
    for item in items {
        let place = item.place.clone();
        match look_up(item) {
            Err(what) => {
                diagnostics.error(&place, what);
                fine = false;
            }
            Ok(given) => {
                fine &= fits(&given, &list, diagnostics);
                list.push(given);
            }
        }
    }
    fine.then_some(list)
}

/// Returns the combined effect of lists of options, the most general one first, for a client at
/// `place`: the last list with an option about a subject decides about it.
pub(crate) fn terms(
    lists: &[&[Given]],
    place: &Location,
    diagnostics: &mut Diagnostics,
) -> Option<(Terms, RuleSource)> {
    let mut draft = Draft {
        root_squash: true,
        all_squash: false,
        terms: Terms::default(),
        idmap: IdmapOptions::default(),
        place: place.clone(),
    };
    let mut origin = RuleSource::new(place.clone());
    let mut fine = true;
    let mut options = Vec::new();
    for given in deciding(lists) {
        draft.place.clone_from(&given.place);
        if let Err(what) = (given.effect)(&mut draft, &given.value) {
            diagnostics.error(&given.place, format!("option {}: {what}", given.option.name));
            fine = false;
        }
        if !given.option.repeats {
            options.push((given.option.about, given.place.clone()));
        }
    }
    let Draft { mut terms, idmap, root_squash, all_squash, .. } = draft;
    terms.rules.ids.squash = match (all_squash, root_squash) {
        (true, _) => Squash::All,
        (false, true) => Squash::Root,
        (false, false) => Squash::None,
    };
    for (place, doubt) in idmap.finish(&mut terms.rules, &mut origin) {
        diagnostics.warning(&place, doubt);
    }
    origin.options = options.into();
    fine.then_some((terms, origin))
}

/// Returns the options of each list that no later list overrides.
fn deciding<'a>(lists: &[&'a [Given]]) -> Vec<&'a Given> {
    let (mut decided, mut kept) = (HashSet::new(), Vec::new());
    for list in lists.iter().rev() {
        let open: Vec<_> =
            list.iter().filter(|given| !decided.contains(given.option.about)).collect();
        decided.extend(list.iter().map(|given| given.option.about));
        kept.push(open);
    }
    kept.into_iter().rev().flatten().collect()
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

/// Returns whether an option is compatible with those before it in the same list.
fn fits(given: &Given, list: &[Given], diagnostics: &mut Diagnostics) -> bool {
    if given.option.repeats {
        return true;
    }
    let Some(other) = list.iter().find(|other| other.option.about == given.option.about) else {
        return true;
    };
    let (name, same) = (given.option.name, other.option.name);
    if same == name && other.value == given.value {
        diagnostics.warning(&given.place, format!("option {name} stands twice"));
        return true;
    }
    let what = match name {
        _ if same != name => format!("option {name} contradicts {same}"),
        "sec" => "option sec stands twice: rules by flavor are not kept, name all in one".into(),
        _ => format!("option {name} stands twice with different values"),
    };
    diagnostics.error(&given.place, what);
    false
}
