//! The dashboard, the metrics and health pages, and the socket for actions.

use crate::{
    Field,
    enums::switch,
    file::{
        schema::{Key, Preset, Section},
        shown::{if_true, list},
    },
    model::{Admin, AdminSocket, Problem, UnixAccess},
    unix_socket,
    values::{admin_address, file_mode, route_host, user_id},
};
use serde_json::Value;
use std::net::SocketAddr;

pub(super) const ADMIN: Section<Admin> = Section {
    path: "admin",
    about: "The dashboard at `/`, and the pages `/metrics`, `/status`, `/healthz`, `/ready`, `/config` and `/log-level`. \
            An address alone is short for a mapping with it; `off` disables them.",
    keys: &[
        Key::at_restart(
            "address",
            "address and port, or `off`",
            Preset::Is("127.0.0.1:9901"),
            "Address on which the pages are served, over plain HTTP and without a password: keep it on \
                    loopback or a private network. A port alone means loopback.",
            |field, admin| admin.address = address(field),
            |admin| admin.address.map_or_else(|| "off".into(), |address| address.to_string().into()),
        ),
        Key::at_restart(
            "hosts",
            "list of hosts",
            Preset::Means("none"),
            "Names under which the pages may be requested: `gateway.internal`, or `*.internal` for everything \
                    below it. IP addresses and `localhost` are always accepted. A request for another host receives a \
                    421 response, so that no web page can direct a browser here by a name of its own (DNS rebinding).",
            |field, admin| admin.hosts = hosts(field),
            |admin| list(admin.hosts.iter().map(|host| host.as_str().into())),
        ),
        Key::at_restart(
            "actions",
            "`on` or `off`",
            Preset::Is("off"),
            "Whether requests to `address` may act: `POST /drain?upstream=NAME&server=ADDRESS` takes a server out of \
                    service and `/undrain?...` back into it, `POST /log-level?level=LEVEL` changes the level of the \
                    log, and `POST /reload` reloads. Every process that reaches the address may then do so; the \
                    socket admits users instead.",
            |field, admin| field.set(&mut admin.actions, switch),
            |admin| if_true(admin.actions),
        ),
        Key::at_restart(
            "socket",
            "path, or mapping",
            Preset::Means("none"),
            "Unix socket on which the same pages are served, and on which actions are always possible for the users \
                    that it admits: `quadrille ctl` uses it. A path alone is short for a mapping with it.",
            |field, admin| admin.socket = socket(field),
            |admin| admin.socket.as_ref().map_or(Value::Null, |socket| ADMIN_SOCKET.show(socket)),
        ),
    ],
};

pub(super) const ADMIN_SOCKET: Section<Option<AdminSocket>, AdminSocket> = Section {
    path: "admin.socket",
    about: "The Unix socket for actions. It admits root, the user that the gateway runs as, and further users \
            as configured here. The kernel identifies them (`SO_PEERCRED`).",
    keys: &[
        Key::at_restart(
            "path",
            "path",
            Preset::Required,
            "Path of the socket, at most 107 bytes, such as `/run/quadrille/admin.sock`. Its directory must exist. A \
                    socket that a process has left there is replaced, one that a process serves is not.",
            |field, socket| *socket = at_path(field),
            |socket| socket.path.display().to_string().into(),
        ),
        Key::at_restart(
            "group",
            "name or number",
            Preset::Means("the process's own group, whose members are not admitted"),
            "Group of the socket's file, whose members are admitted. The gateway's user must belong to it.",
            |field, socket| {
                if let (Some(socket), Some(group)) = (socket, field.text()) {
                    socket.access.group = Some(group.to_owned());
                }
            },
            |socket| socket.access.group.clone().map_or(Value::Null, Value::from),
        ),
        Key::at_restart(
            "users",
            "list of user ids",
            Preset::Means("none"),
            "Ids of further users that are admitted, as `id -u NAME` prints them.",
            |field, socket| {
                if let Some(socket) = socket {
                    socket.users = field.items().iter().filter_map(|field| field.parse(user_id)).collect();
                }
            },
            |socket| list(socket.users.iter().map(|user| (*user).into())),
        ),
        Key::at_restart(
            "mode",
            "octal digits",
            Preset::Means("`0600`; `0660` with `group`, `0666` with `users`"),
            "Permission bits of the socket's file. Users with access to it are identified in any case.",
            |field, socket| {
                if let Some(socket) = socket {
                    socket.access.mode = field.parse(file_mode).or(socket.access.mode);
                }
            },
            |socket| socket.access.mode.map_or(Value::Null, |mode| format!("{mode:04o}").into()),
        ),
    ],
};

/// Reads the settings of the admin pages; `None` if they are off.
pub(super) fn admin(field: &Field<'_>) -> Option<Admin> {
    let mut admin = Admin { place: field.place(), ..Admin::default() };
    if field.is_scalar() {
        admin.address = address(field);
        return admin.address.map(|_| admin);
    }
    ADMIN.read(field, &mut admin)?;
    if let (Some(address), None) = (field.entry("address").filter(is_off), field.entry("socket")) {
        let remedy = "write `admin: off`, or add `socket`";
        address.error(Problem::new("neither an address nor a socket is left", remedy));
    }
    Some(admin)
}

fn address(field: &Field<'_>) -> Option<SocketAddr> {
    if is_off(field) { None } else { field.parse(admin_address) }
}

fn is_off(field: &Field<'_>) -> bool {
    field.node().text().is_some_and(|text| matches!(switch(text), Ok(false)))
}

fn hosts(field: &Field<'_>) -> Vec<String> {
    field.items().iter().filter_map(|field| field.parse(route_host)?).collect()
}

fn socket(field: &Field<'_>) -> Option<AdminSocket> {
    if field.is_scalar() {
        return at_path(field);
    }
    let mut socket = None;
    ADMIN_SOCKET.read(field, &mut socket)?;
    socket
}

fn at_path(field: &Field<'_>) -> Option<AdminSocket> {
    let path = field.file()?;
    if let Err(problem) = unix_socket::file(&path) {
        return field.fail(problem);
    }
    Some(AdminSocket { path, access: UnixAccess::default(), users: Vec::new(), place: field.place() })
}
