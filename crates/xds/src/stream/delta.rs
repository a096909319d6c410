//! Delta: a request says what has changed in what is wanted, a response what has changed in the resources.

use super::{Interest, Offer, Request, Response, Stream, Subscription, offer::Builder};
use crate::{Kind, proto};

/// Subscribes, unsubscribes, or answers the last response.
pub(super) fn request(kind: Kind, subscription: &mut Subscription) -> Request {
    let answer = subscription.take_answer();
    let first = subscription.asked == Interest::Nothing;
    let Subscription { wanted, asked, held, nonce, .. } = subscription;
    let only_in = |one: &Interest, other: &Interest| -> Vec<String> {
        one.names().filter(|name| !other.includes(name)).cloned().collect()
    };
    let request = proto::DeltaDiscoveryRequest {
        node: None,
        type_url: kind.type_url(),
        resource_names_subscribe: only_in(wanted, asked),
        resource_names_unsubscribe: only_in(asked, wanted),
        initial_resource_versions: if first {
            held.clone().into_iter().collect()
        } else {
            Default::default()
        },
        response_nonce: if answer.is_some() { nonce.clone() } else { String::new() },
        error_detail: answer.flatten(),
    };
    *asked = wanted.clone();
    Request::Delta(request)
}

pub(super) fn receive(stream: &mut Stream, response: proto::DeltaDiscoveryResponse) -> Option<Offer> {
    let kind = Kind::of_type_url(&response.type_url)?;
    let subscription = &mut stream.kinds[kind.index()];
    if subscription.wanted.is_nothing() {
        return None;
    }
    subscription.nonce = response.nonce.clone();
    let mut offer = Builder::new(kind, &stream.limits);
    for resource in &response.resources {
        // Without it, it is a heartbeat: nothing has changed.
        if let Some(any) = &resource.resource {
            offer.add(any, Some((&resource.name, &resource.version)), &subscription.wanted);
        }
    }
    offer.limit(subscription.held.len());
    let mut removed = response.removed_resources;
    removed.retain(|name| subscription.wanted.includes(name) && name.len() <= stream.limits.name);
    Some(offer.finish(response.nonce, response.system_version_info, removed, false))
}

impl From<proto::DeltaDiscoveryResponse> for Response {
    fn from(response: proto::DeltaDiscoveryResponse) -> Self {
        Self::Delta(response)
    }
}

impl TryFrom<Request> for proto::DeltaDiscoveryRequest {
    type Error = ();

    fn try_from(request: Request) -> Result<Self, ()> {
        match request {
            Request::Delta(request) => Ok(request),
            Request::StateOfTheWorld(_) => Err(()),
        }
    }
}
