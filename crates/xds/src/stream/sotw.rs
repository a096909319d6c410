//! State-of-the-world variant: a request repeats all names, a response all resources.

use super::{
    message::Request,
    subscription::Subscription,
    update::{Update, UpdateBuilder},
};
use crate::{Limits, ResourceType, proto};

/// Creates a subscription, or an ACK or NACK of the last response; both contain the current subscription.
pub(super) fn request(kind: ResourceType, subscription: &mut Subscription) -> Request {
    let answer = subscription.take_answer();
    subscription.requested = subscription.wanted.clone();
    Request::StateOfTheWorld(proto::DiscoveryRequest {
        version_info: subscription.version.clone(),
        node: None,
        resource_names: subscription.wanted.names().cloned().collect(),
        type_url: kind.type_url(),
        response_nonce: subscription.nonce.clone(),
        error_detail: answer.flatten(),
    })
}

pub(super) fn receive(
    kind: ResourceType,
    subscription: &mut Subscription,
    limits: &Limits,
    response: proto::DiscoveryResponse,
) -> Update {
    subscription.nonce = response.nonce.clone();
    let mut update = UpdateBuilder::new(kind, limits);
    for resource in &response.resources {
        update.add(resource, None, &subscription.wanted);
    }
    update.finish(response.nonce, response.version_info, Vec::new(), kind.is_complete())
}
