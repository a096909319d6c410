//! Listener filters: the PROXY protocol, the original destination, and the inspectors with the destination ports at
//! which they run.

use crate::{
    filters::{self, Filter},
    reader::{Field, Message, ReadMessage},
    schema,
    values::number,
};
use quadrille_config::{
    Problem,
    model::{Ports, ProxyProtocolIn},
};

/// Combined effect of a listener's filters.
pub(crate) struct ListenerFilters {
    pub(crate) proxy_protocol: ProxyProtocolIn,
    /// Whether the kernel is queried for the original destination of redirected connections.
    pub(crate) original_destination: bool,
    /// Destination ports for TLS detection; `None` if not configured.
    pub(crate) tls: Option<Ports>,
    /// Destination ports for plaintext HTTP detection.
    pub(crate) http: Ports,
}

/// Reads `listener_filters`.
pub(crate) fn listener_filters(message: &Message<'_>) -> Option<ListenerFilters> {
    let mut found = ListenerFilters {
        proxy_protocol: ProxyProtocolIn::Off,
        original_destination: false,
        tls: None,
        http: Ports::none(),
    };
    for filter in filters::listener(message.list("listener_filters"))? {
        match filter.kind {
            filters::TLS_INSPECTOR | filters::TLS_INSPECTOR_NAME => found.tls = Some(enabled(&filter)?),
            filters::HTTP_INSPECTOR | filters::HTTP_INSPECTOR_NAME => found.http = enabled(&filter)?,
            filters::ORIGINAL_DST | filters::ORIGINAL_DST_NAME => {
                always_enabled(&filter)?;
                found.original_destination = true;
            }
            _ => {
                always_enabled(&filter)?;
                if let Some(config) = filter.config {
                    config.message(&schema::PROXY_PROTOCOL)?;
                }
                found.proxy_protocol = ProxyProtocolIn::Required;
            }
        }
    }
    Some(found)
}

fn always_enabled(filter: &Filter<'_>) -> Option<()> {
    match &filter.disabled_at {
        None => Some(()),
        Some(condition) => condition.fail(Problem::new(
            "refused: only inspectors can be disabled for some connections",
            "create a listener without the filter",
        )),
    }
}

/// Returns the destination ports at which a filter runs.
fn enabled(filter: &Filter<'_>) -> Option<Ports> {
    let disabled = match &filter.disabled_at {
        Some(condition) => matching_ports(condition)?,
        None => PortSet::default(),
    };
    Some(disabled.complement().into_ports())
}

/// Returns the destination ports that match an `envoy.config.listener.v3.ListenerFilterChainMatchPredicate`.
fn matching_ports(field: &Field<'_>) -> Option<PortSet> {
    let message = field.message(&schema::LISTENER_PREDICATE)?;
    let kinds = ["or_match", "and_match", "not_match", "any_match", "destination_port_range"];
    let rules = |set: &Field<'_>| -> Option<Vec<PortSet>> {
        set.message(&schema::LISTENER_PREDICATE_SET)?.list("rules").iter().map(matching_ports).collect()
    };
    Some(match message.one_of(&kinds) {
        Some(("or_match", set)) => rules(&set)?.into_iter().fold(PortSet::default(), PortSet::or),
        Some(("and_match", set)) => {
            let others = rules(&set)?.into_iter().map(PortSet::complement);
            others.fold(PortSet::default(), PortSet::or).complement()
        }
        Some(("not_match", rule)) => matching_ports(&rule)?.complement(),
        Some(("any_match", _)) => match message.flag("any_match") {
            true => PortSet::default().complement(),
            false => return field.fail("`any_match` must be `true` or omitted"),
        },
        Some((_, range)) => {
            let range = range.message(&schema::INT32_RANGE)?;
            let end = |name| range.get(name).map_or(Some(0), |field| field.parse(number));
            PortSet::range(end("start")?, end("end")?)
        }
        None => return field.fail("the condition is empty"),
    })
}

/// Port ranges, ordered and disjoint; the end is exclusive.
#[derive(Debug, Default, PartialEq, Eq)]
struct PortSet(Vec<(u32, u32)>);

const END: u32 = 1 << 16;

impl PortSet {
    fn range(start: u32, end: u32) -> Self {
        let end = end.min(END);
        Self(if start < end { vec![(start, end)] } else { Vec::new() })
    }

    fn or(self, other: Self) -> Self {
        let mut all = [self.0, other.0].concat();
        all.sort_unstable();
        let mut joined: Vec<(u32, u32)> = Vec::new();
        for (start, end) in all {
            match joined.last_mut() {
                Some((_, last)) if *last >= start => *last = end.max(*last),
                _ => joined.push((start, end)),
            }
        }
        Self(joined)
    }

    fn complement(self) -> Self {
        let mut gaps = Vec::new();
        let mut from = 0;
        for (start, end) in self.0 {
            gaps.extend((from < start).then_some((from, start)));
            from = end;
        }
        gaps.extend((from < END).then_some((from, END)));
        Self(gaps)
    }

    fn into_ports(self) -> Ports {
        let port = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
        Ports(self.0.into_iter().map(|(start, end)| (port(start), port(end - 1))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::{END, PortSet};

    #[test]
    fn ranges_are_merged_and_inverted() {
        let set = PortSet::range(8080, 8081).or(PortSet::range(80, 90)).or(PortSet::range(85, 100));
        assert_eq!(set.0, [(80, 100), (8080, 8081)]);
        let others = set.complement();
        assert_eq!(others.0, [(0, 80), (100, 8080), (8081, END)]);
        assert_eq!(others.complement().into_ports().0, [(80, 99), (8080, 8080)]);
        assert_eq!(PortSet::default().complement().into_ports().0, [(0, u16::MAX)]);
        assert_eq!(PortSet::range(0, u32::MAX).complement(), PortSet::default());
        assert_eq!(PortSet::range(7, 7), PortSet::default());
    }
}
