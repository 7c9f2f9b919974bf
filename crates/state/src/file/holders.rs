use std::collections::BTreeMap;

use super::Holder;
use crate::ClientId;

/// Values for the holders of a file, ordered by holder. Most files have one or two holders, which
/// are stored without a tree.
pub(crate) enum Holders<V> {
    Few(Vec<(Holder, V)>),
    Many(BTreeMap<Holder, V>),
}

/// Most holders that are searched linearly.
const FEW: usize = 8;

impl<V> Default for Holders<V> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<V> Holders<V> {
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Few(few) => few.is_empty(),
            Self::Many(many) => many.is_empty(),
        }
    }

    /// Sets the value of a holder; returns the previous one.
    pub(crate) fn insert(&mut self, holder: Holder, value: V) -> Option<V> {
        if let Some(known) = self.get_mut(holder) {
            return Some(std::mem::replace(known, value));
        }
        match self {
            Self::Few(few) if few.len() < FEW => {
                let at = few.partition_point(|(other, _)| *other < holder);
                few.reserve_exact(1);
                few.insert(at, (holder, value));
            }
            Self::Few(few) => {
                let few = few.drain(..).chain([(holder, value)]);
                *self = Self::Many(few.collect());
            }
            Self::Many(many) => {
                many.insert(holder, value);
            }
        }
        None
    }

    pub(crate) fn remove(&mut self, holder: Holder) -> Option<V> {
        match self {
            Self::Few(few) => {
                let at = few.iter().position(|(other, _)| *other == holder)?;
                Some(few.remove(at).1)
            }
            Self::Many(many) => {
                let value = many.remove(&holder);
                if many.is_empty() {
                    *self = Self::default();
                }
                value
            }
        }
    }

    pub(crate) fn get_mut(&mut self, holder: Holder) -> Option<&mut V> {
        match self {
            Self::Few(few) => {
                let mut few = few.iter_mut();
                few.find(|(other, _)| *other == holder).map(|(_, value)| value)
            }
            Self::Many(many) => many.get_mut(&holder),
        }
    }

    /// Returns the first holder of a client, with its value.
    pub(crate) fn of(&self, client: ClientId) -> Option<(Holder, &V)> {
        match self {
            Self::Few(few) => {
                let mut few = few.iter();
                few.find(|(other, _)| other.client == client).map(|(other, value)| (*other, value))
            }
            Self::Many(many) => {
                let (holder, value) = many.range(Holder { client, state: 0 }..).next()?;
                (holder.client == client).then_some((*holder, value))
            }
        }
    }

    /// Returns the numbers of a client's states in this file.
    pub(crate) fn all_of(&self, client: ClientId) -> impl Iterator<Item = u32> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => {
                let (first, last) =
                    (Holder { client, state: 0 }, Holder { client, state: u32::MAX });
                (None, Some(many.range(first..=last)))
            }
        };
        let few = few.into_iter().flatten().map(|(holder, _)| *holder);
        let many = many.into_iter().flatten().map(|(holder, _)| *holder);
        few.chain(many).filter(move |holder| holder.client == client).map(|holder| holder.state)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Holder, &V)> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().map(|(holder, value)| (*holder, value));
        few.chain(many.into_iter().flatten().map(|(holder, value)| (*holder, value)))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Holder, &mut V)> {
        let (few, many) = match self {
            Self::Few(few) => (Some(few), None),
            Self::Many(many) => (None, Some(many)),
        };
        let few = few.into_iter().flatten().map(|(holder, value)| (*holder, value));
        few.chain(many.into_iter().flatten().map(|(holder, value)| (*holder, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_are_found_whether_they_are_few_or_many() {
        let holder = |client| Holder { client: ClientId(client), state: 7 };
        let mut holders = Holders::default();
        for client in 1..=3 * FEW as u64 {
            assert_eq!(holders.insert(holder(client), client), None);
            assert_eq!(holders.insert(holder(client), client + 100), Some(client));
            assert_eq!(holders.iter().count() as u64, client);
            assert_eq!(holders.of(ClientId(client)), Some((holder(client), &(client + 100))));
            assert_eq!(holders.of(ClientId(client + 1)), None);
        }
        for client in 1..=3 * FEW as u64 {
            assert_eq!(holders.remove(holder(client)), Some(client + 100));
            assert_eq!(holders.remove(holder(client)), None);
        }
        assert!(holders.is_empty() && matches!(holders, Holders::Few(_)));
    }
}
