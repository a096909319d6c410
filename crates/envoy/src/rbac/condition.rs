//! Permissions and principals, which are the same conditions under different names.

use crate::{
    common::{cidr_range, string_matcher},
    metadata::metadata_matcher,
    reader::{Field, Message, ReadMessage},
    request_condition::header_matcher,
    schema::{self, Schema},
    values::number,
};
use quadrille_config::{
    Problem,
    model::{AccessCondition, Place},
};

/// Kind of filter whose rules are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Connections,
    Requests,
}

/// State collected while conditions are read.
pub(super) struct Reading {
    of: Of,
    pub(super) direct: Option<Place>,
    pub(super) behind_proxies: Option<Place>,
}

impl Reading {
    pub(super) fn new(of: Of) -> Self {
        Self { of, direct: None, behind_proxies: None }
    }
}

/// Reads `envoy.config.rbac.v3.Permission`.
pub(super) fn permission(field: &Field<'_>, reading: &mut Reading) -> Option<AccessCondition> {
    const KINDS: &[&str] = &[
        "and_rules",
        "or_rules",
        "not_rule",
        "any",
        "header",
        "url_path",
        "destination_ip",
        "destination_port",
        "destination_port_range",
        "requested_server_name",
        "metadata",
    ];
    let message = field.message(&schema::RBAC_PERMISSION)?;
    Some(match only(&message, KINDS)? {
        ("and_rules", set) => AccessCondition::All(permissions(&set, reading)?),
        ("or_rules", set) => AccessCondition::Any(permissions(&set, reading)?),
        ("not_rule", rule) => AccessCondition::Not(Box::new(permission(&rule, reading)?)),
        ("destination_ip", range) => AccessCondition::Local(cidr_range(&range)?),
        ("destination_port", port) => {
            let port = port.parse(number)?;
            AccessCondition::LocalPort(port, port.saturating_add(1))
        }
        ("destination_port_range", range) => {
            let range = range.message(&schema::INT32_RANGE)?;
            let end = |name| range.get(name).map_or(Some(0), |field| field.parse(number));
            AccessCondition::LocalPort(end("start")?, end("end")?)
        }
        ("requested_server_name", matcher) => AccessCondition::ServerName(string_matcher(&matcher)?),
        (kind, condition) => of_both(kind, &condition, reading)?,
    })
}

/// Reads `envoy.config.rbac.v3.Principal`.
pub(super) fn principal(field: &Field<'_>, reading: &mut Reading) -> Option<AccessCondition> {
    const KINDS: &[&str] = &[
        "and_ids",
        "or_ids",
        "not_id",
        "any",
        "header",
        "url_path",
        "authenticated",
        "source_ip",
        "direct_remote_ip",
        "remote_ip",
        "metadata",
    ];
    let message = field.message(&schema::RBAC_PRINCIPAL)?;
    Some(match only(&message, KINDS)? {
        ("and_ids", set) => AccessCondition::All(principals(&set, reading)?),
        ("or_ids", set) => AccessCondition::Any(principals(&set, reading)?),
        ("not_id", id) => AccessCondition::Not(Box::new(principal(&id, reading)?)),
        ("authenticated", authenticated) => {
            let authenticated = authenticated.message(&schema::RBAC_AUTHENTICATED)?;
            let name = authenticated.get("principal_name");
            AccessCondition::Authenticated(match name {
                Some(name) => Some(string_matcher(&name)?),
                None => None,
            })
        }
        ("source_ip", range) => AccessCondition::Client(cidr_range(&range)?),
        ("direct_remote_ip", range) => {
            reading.direct.get_or_insert_with(|| range.place());
            AccessCondition::Client(cidr_range(&range)?)
        }
        ("remote_ip", range) => {
            reading.behind_proxies.get_or_insert_with(|| range.place());
            AccessCondition::Client(cidr_range(&range)?)
        }
        (kind, condition) => of_both(kind, &condition, reading)?,
    })
}

/// Reads conditions common to both.
fn of_both(kind: &str, condition: &Field<'_>, reading: &Reading) -> Option<AccessCondition> {
    match kind {
        "any" => match condition.text()? {
            "true" => Some(AccessCondition::Always),
            _ => condition.fail("`any` must be `true` or omitted"),
        },
        _ if reading.of == Of::Connections => condition.fail(Problem::new(
            "refused: a connection has no headers, no path and no tokens",
            "use it in the HTTP RBAC filter",
        )),
        "header" => header_matcher(condition).map(AccessCondition::Header),
        "metadata" => metadata_matcher(condition).map(AccessCondition::Metadata),
        _ => {
            let matcher = condition.message(&schema::PATH_MATCHER)?.require("path")?;
            string_matcher(&matcher).map(AccessCondition::Path)
        }
    }
}

fn permissions(set: &Field<'_>, reading: &mut Reading) -> Option<Vec<AccessCondition>> {
    conditions(set, &schema::RBAC_PERMISSION_SET, "rules", |item| permission(item, reading))
}

fn principals(set: &Field<'_>, reading: &mut Reading) -> Option<Vec<AccessCondition>> {
    conditions(set, &schema::RBAC_PRINCIPAL_SET, "ids", |item| principal(item, reading))
}

fn conditions(
    set: &Field<'_>,
    schema: &'static Schema,
    name: &'static str,
    mut read: impl FnMut(&Field<'_>) -> Option<AccessCondition>,
) -> Option<Vec<AccessCondition>> {
    let items = set.message(schema)?.list(name);
    if items.is_empty() {
        return set.fail(format!("`{name}` is empty"));
    }
    items.iter().map(&mut read).collect()
}

/// Returns the only field of a condition.
fn only<'a>(message: &Message<'a>, kinds: &[&'static str]) -> Option<(&'static str, Field<'a>)> {
    let found = message.one_of(kinds);
    if found.is_none() {
        message.field().error("no supported field is set");
    }
    found
}
