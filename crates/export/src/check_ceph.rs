//! Checks of exports whose files are in a Ceph file system.

use crate::CephSource;
use crate::check::Merged;
use crate::diagnostic::Diagnostics;
use crate::placement::{PlacementSpec, placement_of};

/// Reports options that make no sense for an export of this kind.
pub(crate) fn check_ceph(
    export: &Merged,
    placements: &[PlacementSpec],
    diagnostics: &mut Diagnostics,
) {
    let (settings, declaration) = (&export.settings, &export.declaration);
    let CephSource { path, configuration, id, file_system } = &settings.ceph;
    let place = &declaration.place;
    if path.is_none() {
        if configuration.is_some() || id.is_some() || file_system.is_some() {
            let what = "options ceph_conf, ceph_id and ceph_fs need ceph=PATH beside them";
            diagnostics.error(place, what);
        }
        return;
    }
    if settings.mount_point.is_some() {
        diagnostics.error(place, "option mountpoint: the export has ceph=, too; leave one out");
    }
    if settings.refer.is_some() {
        diagnostics.error(place, "option refer: the export has ceph=, too; leave one out");
    }
    if placement_of(placements, &declaration.path).is_some() {
        let what = "option ceph: the export has a [[placement]], which needs a directory of this \
                    machine";
        diagnostics.error(place, what);
    }
}
