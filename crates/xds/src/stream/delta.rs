//! Delta variant: a request contains the changes of a subscription, a response the changes of the resources.

use super::{
    interest::Interest,
    message::Request,
    subscription::Subscription,
    update::{Update, UpdateBuilder},
};
use crate::{Limits, ResourceType, proto};
use std::time::Instant;

/// Creates an ACK or NACK of the last response, or else a request that changes the subscription: a server may mistake
/// a change of the subscription in an ACK for an error, as istiod does.
pub(super) fn request(kind: ResourceType, subscription: &mut Subscription, now: Instant) -> Request {
    if subscription.owes_answer(now)
        && let Some(error_detail) = subscription.take_answer()
    {
        return Request::Delta(proto::DeltaDiscoveryRequest {
            type_url: kind.type_url(),
            response_nonce: subscription.nonce.clone(),
            error_detail,
            ..Default::default()
        });
    }
    let first = subscription.requested == Interest::Nothing;
    let Subscription { wanted, requested, accepted, .. } = subscription;
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
        response_nonce: String::new(),
        error_detail: None,
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
        // A resource without content is a heartbeat: nothing has changed.
        if let Some(any) = &resource.resource {
            update.add(any, Some((&resource.name, &resource.version)), &subscription.wanted);
        }
    }
    update.limit(subscription.accepted.len());
    let mut removed = response.removed_resources;
    removed.retain(|name| subscription.wanted.includes(name) && name.len() <= limits.name);
    update.finish(response.nonce, response.system_version_info, removed, false)
}
