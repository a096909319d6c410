//! Delta: a request says what has changed in what is wanted, a response what has changed in the resources.

use super::{
    interest::Interest,
    message::Request,
    subscription::Subscription,
    update::{Update, UpdateBuilder},
};
use crate::{Limits, ResourceType, proto};

/// Subscribes, unsubscribes, or answers the last response.
pub(super) fn request(kind: ResourceType, subscription: &mut Subscription) -> Request {
    let answer = subscription.take_answer();
    let first = subscription.requested == Interest::Nothing;
    let Subscription { wanted, requested, accepted, nonce, .. } = subscription;
    let only_in = |one: &Interest, other: &Interest| -> Vec<String> {
        one.names().filter(|name| !other.includes(name)).cloned().collect()
    };
    let request = proto::DeltaDiscoveryRequest {
        node: None,
        type_url: kind.type_url(),
        resource_names_subscribe: only_in(wanted, requested),
        resource_names_unsubscribe: only_in(requested, wanted),
        initial_resource_versions: if first {
            accepted.clone().into_iter().collect()
        } else {
            Default::default()
        },
        response_nonce: if answer.is_some() { nonce.clone() } else { String::new() },
        error_detail: answer.flatten(),
    };
    *requested = wanted.clone();
    Request::Delta(request)
}

pub(super) fn receive(
    kind: ResourceType,
    subscription: &mut Subscription,
    limits: &Limits,
    response: proto::DeltaDiscoveryResponse,
) -> Update {
    subscription.nonce = response.nonce.clone();
    let mut update = UpdateBuilder::new(kind, limits);
    for resource in &response.resources {
        // Without it, it is a heartbeat: nothing has changed.
        if let Some(any) = &resource.resource {
            update.add(any, Some((&resource.name, &resource.version)), &subscription.wanted);
        }
    }
    update.limit(subscription.accepted.len());
    let mut removed = response.removed_resources;
    removed.retain(|name| subscription.wanted.includes(name) && name.len() <= limits.name);
    update.finish(response.nonce, response.system_version_info, removed, false)
}
