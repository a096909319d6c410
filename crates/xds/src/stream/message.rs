//! Requests and responses of both dialects.

use crate::proto;

/// What is to be sent.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// In the state-of-the-world dialect.
    StateOfTheWorld(proto::DiscoveryRequest),
    /// In the delta dialect.
    Delta(proto::DeltaDiscoveryRequest),
}

/// What has come.
#[derive(Debug)]
pub enum Response {
    /// In the state-of-the-world dialect.
    StateOfTheWorld(proto::DiscoveryResponse),
    /// In the delta dialect.
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
