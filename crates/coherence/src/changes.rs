//! Changes are noted for clients that are notified of changed attributes.

use comity_export::{ChangesBy, Clearance};
use comity_state::{Client, Engine};

/// Gives a clearance for a change that is noted as one by this client.
pub(crate) fn given<'a>(engine: &'a Engine, client: Option<&Client>) -> Clearance<'a> {
    Clearance::given().noted_in(changes_by(engine, client))
}

/// Returns where changes by a client are noted.
pub(crate) fn changes_by<'a>(engine: &'a Engine, client: Option<&Client>) -> ChangesBy<'a> {
    let client = client.map(|client| client.id().0);
    ChangesBy { objects: engine.changed_objects(), client }
}
