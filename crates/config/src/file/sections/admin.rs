//! The dashboard, and the metrics and health pages.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::Admin,
    values::admin_address,
};

pub(super) const ADMIN: Section = Section {
    path: "admin",
    about: "The dashboard at `/`, and the pages `/metrics`, `/status`, `/healthz`, `/ready` and `/config`. An address alone is short for a mapping with it; \
            `off` switches them off.",
    keys: &[Key {
        name: "address",
        value: "address and port",
        preset: Preset::Required,
        about: "Where the pages are, in plain HTTP and without a password: keep it on loopback or a private network. A \
                port alone means loopback.",
    }],
};

/// The pages, unless they are switched off.
pub(super) fn admin(field: &Field<'_>) -> Option<Admin> {
    let address = match field.is_scalar() {
        true if matches!(field.text()?.to_ascii_lowercase().as_str(), "off" | "false" | "no") => return None,
        true => field.clone(),
        false => field.mapping(&ADMIN)?.require("address")?,
    };
    Some(Admin { address: address.parse(admin_address)?, place: address.place() })
}
