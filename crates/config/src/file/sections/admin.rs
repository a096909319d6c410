//! The dashboard, and the metrics and health pages.

use crate::{
    Field,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list},
    },
    model::Admin,
    values::{admin_address, route_host},
};

pub(super) const ADMIN: Section<Option<Admin>, Admin> = Section {
    path: "admin",
    about: "The dashboard at `/`, and the pages `/metrics`, `/status`, `/healthz`, `/ready` and `/config`. An address \
            alone is short for a mapping with it; `off` disables them.",
    keys: &[
        Key::at_restart(
            "address",
            "address and port",
            Preset::Required,
            "Address on which the pages are served, over plain HTTP and without a password: keep it on \
                    loopback or a private network. A port alone means loopback.",
            |field, admin| *admin = at_address(field),
            |admin| admin.address.to_string().into(),
        ),
        Key::at_restart(
            "hosts",
            "list of hosts",
            Preset::Means("none"),
            "Names under which the pages may be requested: `gateway.internal`, or `*.internal` for everything \
                    below it. IP addresses and `localhost` are always accepted. A request for another host receives a \
                    421 response, so that no web page can direct a browser here by a name of its own (DNS rebinding).",
            |field, admin| {
                if let Some(admin) = admin {
                    admin.hosts = hosts(field);
                }
            },
            |admin| list(admin.hosts.iter().map(|host| host.as_str().into())),
        ),
        Key::at_restart(
            "actions",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether `POST /drain?upstream=NAME&server=ADDRESS` takes a server out of service, and `POST /undrain?...` \
                    back into it. Every process that reaches the address may then do so.",
            |field, admin| {
                if let Some(admin) = admin {
                    field.set(&mut admin.actions, switch);
                }
            },
            |admin| if_true(admin.actions),
        ),
    ],
};

/// Reads the settings of the admin pages; `None` if they are off.
pub(super) fn admin(field: &Field<'_>) -> Option<Admin> {
    if field.is_scalar() {
        let off = matches!(switch(field.text()?), Ok(false));
        return if off { None } else { at_address(field) };
    }
    let mut admin = None;
    ADMIN.read(field, &mut admin)?;
    admin
}

fn hosts(field: &Field<'_>) -> Vec<String> {
    field.items().iter().filter_map(|field| field.parse(route_host)?).collect()
}

fn at_address(field: &Field<'_>) -> Option<Admin> {
    Some(Admin::new(field.parse(admin_address)?, field.place()))
}
