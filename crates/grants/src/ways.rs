//! The directories that lead to what a key was granted. The key may pass through them, and sees in
//! them only what leads on.

use std::collections::HashMap;
use std::sync::Arc;

use comity_vfs::FileKey;

use crate::accounts::Account;
use crate::caller::KeyCaller;
use crate::grants::{Grants, KnownState};
use crate::limits::{WAY_MILLISECONDS, WAYS_OBJECTS_MAX};
use crate::scene::Scene;
use crate::{Moment, ObjectId, Operation};

/// Directories, and who has granted what they lead to.
pub(crate) type Directories = HashMap<FileKey, Arc<Account>>;

/// The ways of one key, by the number of the export.
#[derive(Debug, Default)]
pub(crate) struct Ways(HashMap<u32, ExportWays>);

#[derive(Debug)]
struct ExportWays {
    version: KnownState,
    until: Moment,
    directories: Arc<Directories>,
}

impl Ways {
    /// The ways in an export, if they were found out and still hold.
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

    /// Keeps the ways in an export for a while.
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

/// Finds the directories above all that a key was granted in an export.
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
