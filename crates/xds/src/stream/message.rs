//! Requests and responses of both protocol variants.

use crate::proto;

/// A request to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// State-of-the-world request.
    StateOfTheWorld(proto::DiscoveryRequest),
    /// Delta request.
    Delta(proto::DeltaDiscoveryRequest),
}

/// A received response.
#[derive(Debug)]
pub enum Response {
    /// State-of-the-world response.
    StateOfTheWorld(proto::DiscoveryResponse),
    /// Delta response.
    Delta(proto::DeltaDiscoveryResponse),
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
