//! The directories that lead to granted objects. The key may pass through them, and sees in them
//! only the entries that lead to a granted object.

use std::collections::HashMap;
use std::sync::Arc;

use comity_vfs::FileKey;

use crate::accounts::Account;
use crate::caller::KeyCaller;
use crate::grants::{Grants, KnownState};
use crate::limits::{WAY_MILLISECONDS, WAYS_OBJECTS_MAX};
use crate::scene::Scene;
use crate::{Moment, ObjectId, Operation};

/// Directories, each with the account that granted an object below it.
pub(crate) type Directories = HashMap<FileKey, Arc<Account>>;

/// The directories that lead to one key's granted objects, by the number of the export.
#[derive(Debug, Default)]
pub(crate) struct Ways(HashMap<u32, ExportWays>);

#[derive(Debug)]
struct ExportWays {
    version: KnownState,
    until: Moment,
    directories: Arc<Directories>,
}

impl Ways {
    /// The cached directories of an export, if they are still valid.
    pub(crate) fn known(
        &self,
        export: u32,
        version: KnownState,
        now: Moment,
    ) -> Option<Arc<Directories>> {
        let ways = self.0.get(&export)?;
        let holds = ways.version == version && now < ways.until;
        holds.then(|| Arc::clone(&ways.directories))
    }

    /// Caches the directories of an export for [`WAY_MILLISECONDS`].
    pub(crate) fn keep(
        &mut self,
        export: u32,
        version: KnownState,
        now: Moment,
        directories: &Arc<Directories>,
    ) {
        let until = now.after_milliseconds(WAY_MILLISECONDS);
        let directories = Arc::clone(directories);
        self.0.insert(export, ExportWays { version, until, directories });
    }
}

/// Finds the directories above all objects that a key was granted in an export.
pub(crate) fn find(
    grants: &Grants,
    caller: &KeyCaller,
    scene: &Scene<'_>,
    now: Moment,
) -> Directories {
    let mut directories = Directories::new();
    for ObjectId(object) in grants.objects_of(&caller.key, WAYS_OBJECTS_MAX) {
        let granted = grants.grantor(caller, scene, &object, Operation::Look, now);
        let Some(grantor) = granted.ok().and_then(|decision| decision.grantor) else { continue };
        let Ok(above) = grants.ancestry().within(scene.tree, &object, now) else { continue };
        for ObjectId(dir) in above.directories {
            directories.entry((scene.tree.key)(&dir)).or_insert_with(|| Arc::clone(&grantor));
        }
    }
    directories
}
