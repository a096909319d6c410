//! What of a request rate limits are counted by, as Envoy's descriptors have it.

use super::{HeaderMatch, Network, QueryMatch};
use std::sync::Arc;

/// A list of keys with values, made of a request. If one of its parts cannot be made, there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// Which filters it is for: those of this stage.
    pub stage: u8,
    /// In their order.
    pub parts: Vec<DescriptorPart>,
    /// In the place of the limit that the service has.
    pub limit: Option<DescriptorLimit>,
    /// As how many requests it counts; one if nothing is said.
    pub hits: Option<u64>,
}

/// A number of requests in a unit of time, which is a number of `envoy.type.v3.RateLimitUnit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorLimit {
    /// So many.
    pub requests: u32,
    /// In one of these.
    pub unit: u8,
}

/// A key with the value that it has for a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorPart {
    /// The key.
    pub key: String,
    /// What its value is made of.
    pub value: DescriptorValue,
    /// Without a value the part is left out, and the others stay.
    pub optional: bool,
}

/// What the value of a key is made of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescriptorValue {
    /// This.
    Text(String),
    /// This where the condition holds.
    If(DescriptorCondition, String),
    /// The upstream that the request goes to.
    Upstream,
    /// The first line of a header, or what HTTP/2 has in its place.
    Header(String),
    /// The first parameter of the query that has this name.
    Query(String),
    /// The client's address.
    Client,
    /// The network that the client is in, by so many bits of an IPv4 and of an IPv6 address.
    ClientNetwork(u8, u8),
    /// A text that a filter has found out, by its name and the way to it; the last if there is none.
    Metadata(String, Vec<String>, String),
}

/// Where a value is one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescriptorCondition {
    /// Whether all of these hold is this.
    Headers(Vec<HeaderMatch>, bool),
    /// Likewise.
    Query(Vec<QueryMatch>, bool),
    /// Whether the client is in one of these is this.
    Client(Vec<Network>, bool),
}

/// What a route says of descriptors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteDescriptors {
    /// Its own.
    pub own: Vec<Descriptor>,
    /// Those of its host.
    pub host: Vec<Descriptor>,
    /// Whatever is said of a filter, those of the host count as well.
    pub includes_host: bool,
    /// What it says of filters, by their names.
    pub filters: Vec<(String, FilterOnRoute)>,
}

/// What a route says of a filter that asks a rate limit service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterOnRoute {
    /// It does nothing.
    Off,
    /// This.
    On(Arc<RouteRateLimitService>),
}

/// What counts on a route in the place of what a filter says itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteRateLimitService {
    /// In the place of the filter's.
    pub domain: Option<String>,
    /// Which descriptors of the host are taken.
    pub host: HostDescriptors,
    /// In the place of the route's and the host's, if there are any.
    pub descriptors: Vec<Descriptor>,
}

/// Which descriptors of a host a route takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostDescriptors {
    /// All if it has none of its own.
    #[default]
    UnlessOwn,
    /// All.
    Always,
    /// None.
    Never,
}

impl Descriptor {
    /// Whether the upstream is a part of it.
    pub fn tells_upstream(&self) -> bool {
        self.parts.iter().any(|part| part.value == DescriptorValue::Upstream)
    }
}

impl RouteDescriptors {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.host.is_empty() && self.filters.is_empty()
    }

    /// All that may count.
    pub fn all(&self) -> impl Iterator<Item = &Descriptor> {
        let of_filters = self.filters.iter().filter_map(|(_, said)| match said {
            FilterOnRoute::On(said) => Some(&said.descriptors),
            FilterOnRoute::Off => None,
        });
        self.own.iter().chain(&self.host).chain(of_filters.flatten())
    }

    /// What is said of the filter of this name.
    pub fn of_filter(&self, name: &str) -> Option<&FilterOnRoute> {
        self.filters.iter().find(|(filter, _)| filter == name).map(|(_, said)| said)
    }
}
