//! Messages of a control plane: decoding, validation, response. The first byte selects the dialect and the kind.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prost::Message;
use quadrille_xds::{
    Dialect, Interest, ResourceType, Limits, proto,
    stream::{Response, Stream},
};
use std::time::Instant;

fuzz_target!(|input: &[u8]| {
    let Some((&choice, bytes)) = input.split_first() else { return };
    let dialect = if choice & 1 == 0 { Dialect::StateOfTheWorld } else { Dialect::Delta };
    let limits = Limits { resources: 100, nodes: 100_000, ..Limits::default() };
    let mut stream = Stream::new(dialect, proto::Node::default(), limits);
    stream.connected();
    let kind = ResourceType::ALL[usize::from(choice >> 1) % ResourceType::ALL.len()];
    stream.subscribe(kind, Interest::Wildcard);
    let now = Instant::now();
    while stream.next_request(now).is_some() {}
    let response: Response = match dialect {
        Dialect::StateOfTheWorld => match proto::DiscoveryResponse::decode(bytes) {
            Ok(response) => proto::DiscoveryResponse { type_url: kind.type_url(), ..response }.into(),
            Err(_) => return,
        },
        Dialect::Delta => match proto::DeltaDiscoveryResponse::decode(bytes) {
            Ok(response) => proto::DeltaDiscoveryResponse { type_url: kind.type_url(), ..response }.into(),
            Err(_) => return,
        },
    };
    if let Some(update) = stream.receive(response) {
        assert!(update.resources.len() <= limits.resources);
        stream.answer(now, &update, &[]);
        assert!(stream.next_request(now).is_some(), "each response is acknowledged");
    }
});
