//! The RBAC filters of connections and of requests. What of them cannot be asked here is refused: to leave it out would
//! let in whom it is to keep out.

mod condition;

pub(crate) use condition::Of;

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
    values::enumeration,
};
use condition::{Reading, permission, principal};
use quadrille_config::{
    model::{AccessAction, AccessPolicy, AccessRules, Place},
    yaml::Value,
};

/// A filter's rules, and what they take for granted of the listener.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) rules: AccessRules,
    /// Where it is asked for the address of whoever stands directly before us.
    pub(crate) direct: Option<Place>,
    /// Where it is asked for the client behind proxies.
    pub(crate) behind_proxies: Option<Place>,
}

/// `envoy.extensions.filters.http.rbac.v3.RBAC` and `envoy.extensions.filters.network.rbac.v3.RBAC`. `Some(None)` decides
/// nothing.
pub(crate) fn rbac(field: &Field<'_>, of: Of) -> Option<Option<Access>> {
    let message = field.message(match of {
        Of::Connections => &schema::NETWORK_RBAC,
        Of::Requests => &schema::HTTP_RBAC,
    })?;
    match message.get("rules") {
        Some(rules) => read(&rules, of),
        None => Some(None),
    }
}

/// The shadow rules of a filter of requests, as rules that deny, and the name under which they leave the policy that
/// does; `Some(None)` if there are none.
pub(crate) fn shadow(field: &Field<'_>) -> Option<Option<(Access, String)>> {
    let message = field.message(&schema::HTTP_RBAC)?;
    let Some(rules) = message.get("shadow_rules") else { return Some(None) };
    let name = format!("{}shadow_effective_policy_id", message.string("shadow_rules_stat_prefix"));
    let denying = |mut access: Access| {
        access.rules.action = AccessAction::Deny;
        (access, name)
    };
    read(&rules, Of::Requests).map(|access| access.map(denying))
}

fn read(field: &Field<'_>, of: Of) -> Option<Option<Access>> {
    const ACTIONS: &[(&str, u32, Option<AccessAction>)] =
        &[("ALLOW", 0, Some(AccessAction::Allow)), ("DENY", 1, Some(AccessAction::Deny)), ("LOG", 2, None)];
    let message = field.message(&schema::RBAC_RULES)?;
    let action = match message.get("action") {
        Some(action) => action.parse(enumeration(ACTIONS))?,
        None => Some(AccessAction::Allow),
    };
    let mut reading = Reading::new(of);
    let policies = policies(&message, &mut reading)?;
    let Reading { direct, behind_proxies, .. } = reading;
    let access = |action| {
        let rules = AccessRules { action, policies, place: field.place() };
        Access { rules, direct, behind_proxies }
    };
    Some(action.map(access))
}

/// In the order of their names, as Envoy asks them.
fn policies(rules: &Message<'_>, reading: &mut Reading) -> Option<Vec<AccessPolicy>> {
    let Some(field) = rules.get("policies") else { return Some(Vec::new()) };
    let Value::Mapping(entries) = &field.node().value else {
        return field.fail("expected a mapping of names to policies");
    };
    let mut policies = Vec::with_capacity(entries.len());
    for entry in entries {
        let message = field.child(entry).message(&schema::RBAC_POLICY)?;
        let conditions = |name, read: fn(&Field<'_>, &mut Reading) -> Option<_>, reading: &mut Reading| {
            message.list(name).iter().map(|item| read(item, reading)).collect::<Option<Vec<_>>>()
        };
        policies.push(AccessPolicy {
            name: entry.key.clone(),
            permissions: conditions("permissions", permission, reading)?,
            principals: conditions("principals", principal, reading)?,
        });
    }
    policies.sort_by(|one, other| one.name.cmp(&other.name));
    Some(policies)
}
