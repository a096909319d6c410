//! Rate limit descriptors, as in Envoy.

use super::{HeaderMatch, Network, QueryMatch};
use std::sync::Arc;

/// A list of keys with values, made from a request. If one of its parts cannot be made, there is no descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Descriptor {
    /// The stage of the filters that use the descriptor.
    pub stage: u8,
    /// The parts, in order.
    pub parts: Vec<DescriptorPart>,
    /// The limit that replaces the service's own.
    pub limit: Option<DescriptorLimit>,
    /// The number of requests that it counts as; one by default.
    pub hits: Option<u64>,
}

/// A number of requests in a unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorLimit {
    /// Number of requests.
    pub requests: u32,
    /// The unit, a number of `envoy.type.v3.RateLimitUnit`.
    pub unit: u8,
}

/// A key with its value for a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescriptorPart {
    /// The key.
    pub key: String,
    /// The source of its value.
    pub value: DescriptorValue,
    /// Whether the part is omitted if it has no value.
    pub optional: bool,
}

/// The source of the value of a key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescriptorValue {
    /// This text.
    Text(String),
    /// This text if the condition holds.
    If(DescriptorCondition, String),
    /// The upstream that the request goes to.
    Upstream,
    /// The first line of a header, or an HTTP/2 pseudo-header.
    Header(String),
    /// The first parameter of the query that has this name.
    Query(String),
    /// The client's address.
    Client,
    /// The client's network, with these prefix lengths for IPv4 and IPv6.
    ClientNetwork(u8, u8),
    /// Text from a filter's metadata, by the filter's name and the path; the last text is the default.
    Metadata(String, Vec<String>, String),
}

/// A condition on a descriptor value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum DescriptorCondition {
    /// All of these match, or (with `false`) not all of them.
    Headers(Vec<HeaderMatch>, bool),
    /// All of these match, or (with `false`) not all of them.
    Query(Vec<QueryMatch>, bool),
    /// The client is in one of these networks, or (with `false`) in none.
    Client(Vec<Network>, bool),
}

/// The rate limit descriptors of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteDescriptors {
    /// The route's own.
    pub own: Vec<Descriptor>,
    /// The descriptors of its virtual host.
    pub host: Vec<Descriptor>,
    /// Whether those of the host always count too, independent of the filter.
    pub includes_host: bool,
    /// Settings of filters, by their names.
    pub filters: Vec<(String, FilterOnRoute)>,
}

/// Settings of a route for a filter that queries a rate limit service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FilterOnRoute {
    /// The filter is off.
    Off,
    /// These settings.
    On(Arc<RouteRateLimitService>),
}

/// Settings of a route that replace a filter's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteRateLimitService {
    /// The domain that replaces the filter's.
    pub domain: Option<String>,
    /// The use of the host's descriptors.
    pub host: HostDescriptors,
    /// Descriptors that replace the route's and the host's, if there are any.
    pub descriptors: Vec<Descriptor>,
}

/// The use of a host's descriptors by a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum HostDescriptors {
    /// Used if the route has none of its own.
    #[default]
    UnlessOwn,
    /// Always used.
    Always,
    /// Never used.
    Never,
}

impl Descriptor {
    /// Returns whether the upstream is a part of the descriptor.
    pub fn tells_upstream(&self) -> bool {
        self.parts.iter().any(|part| part.value == DescriptorValue::Upstream)
    }
}

impl RouteDescriptors {
    /// Returns whether there are no descriptors and no settings.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.host.is_empty() && self.filters.is_empty()
    }

    /// Returns all descriptors that may count.
    pub fn all(&self) -> impl Iterator<Item = &Descriptor> {
        let of_filters = self.filters.iter().filter_map(|(_, said)| match said {
            FilterOnRoute::On(said) => Some(&said.descriptors),
            FilterOnRoute::Off => None,
        });
        self.own.iter().chain(&self.host).chain(of_filters.flatten())
    }

    /// Returns the settings of the filter of this name.
    pub fn of_filter(&self, name: &str) -> Option<&FilterOnRoute> {
        self.filters.iter().find(|(filter, _)| filter == name).map(|(_, said)| said)
    }
}
