//! State of the world: a request repeats all names, a response all resources.

use super::{Offer, Request, Response, Stream, Subscription, offer::Builder};
use crate::{Kind, proto};

/// Subscribes, or answers the last response; both say what is wanted now.
pub(super) fn request(kind: Kind, subscription: &mut Subscription) -> Request {
    let answer = subscription.take_answer();
    subscription.asked = subscription.wanted.clone();
    Request::StateOfTheWorld(proto::DiscoveryRequest {
        version_info: subscription.version.clone(),
        node: None,
        resource_names: subscription.wanted.names().cloned().collect(),
        type_url: kind.type_url(),
        response_nonce: subscription.nonce.clone(),
        error_detail: answer.flatten(),
    })
}

pub(super) fn receive(stream: &mut Stream, response: proto::DiscoveryResponse) -> Option<Offer> {
    let kind = Kind::of_type_url(&response.type_url)?;
    let subscription = &mut stream.kinds[kind.index()];
    if subscription.wanted.is_nothing() {
        return None;
    }
    subscription.nonce = response.nonce.clone();
    let mut offer = Builder::new(kind, &stream.limits);
    for resource in &response.resources {
        offer.add(resource, None, &subscription.wanted);
    }
    Some(offer.finish(response.nonce, response.version_info, Vec::new(), kind.is_complete()))
}

impl From<proto::DiscoveryResponse> for Response {
    fn from(response: proto::DiscoveryResponse) -> Self {
        Self::StateOfTheWorld(response)
    }
}

impl TryFrom<Request> for proto::DiscoveryRequest {
    type Error = ();

    fn try_from(request: Request) -> Result<Self, ()> {
        match request {
            Request::StateOfTheWorld(request) => Ok(request),
            Request::Delta(_) => Err(()),
        }
    }
}
