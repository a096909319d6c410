//! Request mirroring.

use crate::{
    fraction::runtime_fraction,
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{fraction, model::Mirror};

/// Reads the policies of a route, of a virtual host or of a route configuration; `Some(None)` if unset.
pub(crate) fn mirrors(message: &Message<'_>) -> Option<Option<Vec<Mirror>>> {
    let fields = message.list("request_mirror_policies");
    if fields.is_empty() {
        return Some(None);
    }
    fields.iter().map(mirror).collect::<Option<Vec<_>>>().map(Some)
}

fn mirror(field: &Field<'_>) -> Option<Mirror> {
    let message = field.message(&schema::REQUEST_MIRROR_POLICY)?;
    let parts = match message.get("runtime_fraction") {
        Some(fraction) => runtime_fraction(&fraction)?,
        None => fraction::ALL,
    };
    Some(Mirror {
        upstream: message.require("cluster")?.text()?.to_owned(),
        parts,
        marks_host: !message.flag("disable_shadow_host_suffix_append"),
    })
}
