//! RBAC filters of connections and of requests. Unsupported conditions are refused: ignoring them could allow
//! unauthorized access.

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

/// A filter's rules, and places where they depend on the listener.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) rules: AccessRules,
    /// Place of a rule that uses the address of the direct peer.
    pub(crate) direct: Option<Place>,
    /// Place of a rule that uses the address of the client behind proxies.
    pub(crate) behind_proxies: Option<Place>,
}

/// Reads `envoy.extensions.filters.http.rbac.v3.RBAC` and `envoy.extensions.filters.network.rbac.v3.RBAC`.
/// `Some(None)` has no effect.
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

/// Reads the shadow rules of an HTTP filter as deny rules, with the metadata name for the matched policy;
/// `Some(None)` if unset.
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

/// Reads policies in the order of their names, in which Envoy evaluates them.
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
