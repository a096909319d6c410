use super::*;
use quadrille_config::model::{ChainMatch, ClientOrigin, Place, Ports, Serve, Transport};

fn chain(names: &[&str], transport: Option<Transport>, protocols: &[&str]) -> Chain {
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    accepting(ChainMatch {
        server_names: owned(names),
        transport,
        application_protocols: owned(protocols),
        ..ChainMatch::default()
    })
}

fn accepting(accepts: ChainMatch) -> Chain {
    Chain { accepts, ..Chain::new(None, Serve::Tcp(Vec::new()), Place::builtin()) }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn from_to(client: &str, local: &str) -> Addresses {
    Addresses { peer: address(client), client: address(client), local: address(local) }
}

/// Returns addresses for a listener whose chains do not match on them.
fn anywhere() -> Addresses {
    from_to("192.0.2.1:5", "192.0.2.2:443")
}

fn networks(texts: &[&str]) -> Vec<Network> {
    texts.iter().map(|text| text.parse().expect("a network")).collect()
}

fn listener(chains: Vec<Chain>, otherwise: bool) -> Listener {
    let address = ([127, 0, 0, 1], 0).into();
    let mut listener = Listener::new(address, Place::builtin(), chain(&[], None, &[]));
    listener.default_chain = otherwise.then(|| chain(&[], None, &[]));
    listener.chains = chains;
    listener
}

fn hello(name: &str, protocols: &[&str]) -> ClientHelloInfo {
    ClientHelloInfo {
        tls: true,
        server_name: (!name.is_empty()).then(|| name.to_owned()),
        protocols: protocols.iter().map(|&name| name.to_owned()).collect(),
        offers_session: false,
    }
}

/// Each step of matching is final, as in Envoy.
#[test]
fn the_most_specific_value_decides_at_each_step() {
    let tls = Some(Transport::Tls);
    let chains = vec![
        chain(&["www.example.com"], None, &[]),
        chain(&["*.example.com"], None, &[]),
        chain(&["*.com"], tls, &[]),
        chain(&["h2.example.com"], None, &["h2"]),
        chain(&[], None, &["istio", "istio-http/1.1"]),
        chain(&[], Some(Transport::Plain), &[]),
    ];
    for otherwise in [None, Some(6)] {
        let matcher =
            FilterChainMatcher::new(&listener(chains.clone(), otherwise.is_some())).expect("no two alike");
        for (hello, expected) in [
            (hello("www.example.com", &[]), Some(0)),
            (hello("a.www.example.com", &[]), Some(1)),
            (hello("example.com", &[]), Some(2)),
            (hello("other.com", &["istio"]), Some(2)),
            (hello("h2.example.com", &["http/1.1", "h2"]), Some(3)),
            (hello("h2.example.com", &["http/1.1"]), otherwise),
            (hello("example.net", &["h2", "istio"]), Some(4)),
            (hello("example.net", &["h2"]), otherwise),
            (hello("", &["istio-http/1.1"]), Some(4)),
            (hello("", &[]), otherwise),
            (ClientHelloInfo::default(), Some(5)),
        ] {
            assert_eq!(matcher.find_chain(&hello, &anywhere()), expected, "{hello:?}");
        }
        assert_eq!(matcher.only_chain(), None);
    }
}

#[test]
fn one_chain_for_all_needs_no_look() {
    let matcher = FilterChainMatcher::new(&listener(vec![chain(&[], None, &[])], false)).expect("one chain");
    assert_eq!(matcher.only_chain(), Some(0));
    assert_eq!(matcher.find_chain(&hello("a", &["b"]), &anywhere()), Some(0));
    let matcher =
        FilterChainMatcher::new(&listener(vec![chain(&["a"], None, &[])], false)).expect("one chain");
    assert_eq!(matcher.only_chain(), None);
}

#[test]
fn two_chains_for_the_same_are_refused() {
    for (one, other) in [
        (chain(&[], None, &[]), chain(&[], None, &[])),
        (chain(&["a", "b"], None, &["h2"]), chain(&["B"], None, &["h2", "x"])),
        (chain(&["*.a"], None, &[]), chain(&["*.a"], None, &[])),
    ] {
        let problems = FilterChainMatcher::new(&listener(vec![one, other], false)).expect_err("two alike");
        assert!(problems[0].problem.message.contains("accepts the same connections"), "{problems:?}");
    }
    let apart = vec![chain(&["a"], Some(Transport::Tls), &[]), chain(&["a"], None, &[])];
    assert!(FilterChainMatcher::new(&listener(apart, false)).is_ok());
    assert!(FilterChainMatcher::new(&listener(Vec::new(), false)).is_err());
}

#[test]
fn the_destination_decides_first_and_for_good() {
    let to = |port: Option<u16>, destinations: &[&str], transport| {
        accepting(ChainMatch {
            destination_port: port,
            destinations: networks(destinations),
            transport,
            ..ChainMatch::default()
        })
    };
    let chains = vec![
        to(Some(8080), &[], Some(Transport::Tls)),
        to(Some(9090), &["10.0.0.0/8"], None),
        to(None, &["10.1.0.0/16", "fd00::/8"], None),
        to(None, &["10.0.0.0/8"], None),
        to(None, &[], Some(Transport::Plain)),
    ];
    let matcher = FilterChainMatcher::new(&listener(chains, false)).expect("no two alike");
    for (local, expected) in [
        ("10.1.2.3:8080", None),
        ("10.1.2.3:9090", Some(1)),
        ("192.0.2.1:9090", None),
        ("10.1.2.3:80", Some(2)),
        ("[fd00::1]:80", Some(2)),
        ("[::ffff:10.1.2.3]:80", Some(2)),
        ("10.2.2.3:80", Some(3)),
        ("192.0.2.1:80", Some(4)),
        ("[2001:db8::1]:80", Some(4)),
    ] {
        let found = matcher.find_chain(&ClientHelloInfo::default(), &from_to("192.0.2.9:1", local));
        assert_eq!(found, expected, "{local}");
    }
    let tls = hello("a", &[]);
    assert_eq!(matcher.find_chain(&tls, &from_to("192.0.2.9:1", "10.1.2.3:8080")), Some(0));
}

#[test]
fn where_the_client_is_decides_last() {
    let client = |accepts| accepting(accepts);
    let this_machine = Some(ClientOrigin::ThisMachine);
    let chains = vec![
        client(ChainMatch { peers: networks(&["198.51.100.0/24"]), ..ChainMatch::default() }),
        client(ChainMatch { origin: this_machine, ..ChainMatch::default() }),
        client(ChainMatch { clients: networks(&["192.0.2.0/24"]), ..ChainMatch::default() }),
        client(ChainMatch {
            clients: networks(&["192.0.2.0/25"]),
            client_ports: vec![7, 8],
            ..ChainMatch::default()
        }),
        client(ChainMatch::default()),
    ];
    let matcher = FilterChainMatcher::new(&listener(chains, false)).expect("no two alike");
    for (from, expected) in [
        ("198.51.100.1:5", Some(0)),
        ("127.0.0.1:5", Some(1)),
        ("10.0.0.2:5", Some(1)),
        ("[::ffff:10.0.0.2]:5", Some(1)),
        ("192.0.2.200:5", Some(2)),
        ("192.0.2.1:8", Some(3)),
        // The longer prefix has matched, and other ports are not accepted there.
        ("192.0.2.1:9", None),
        ("203.0.113.1:5", Some(4)),
    ] {
        let found = matcher.find_chain(&ClientHelloInfo::default(), &from_to(from, "10.0.0.2:80"));
        assert_eq!(found, expected, "{from}");
    }
    let announced = Addresses { peer: address("198.51.100.1:1"), ..from_to("192.0.2.1:8", "10.0.0.2:80") };
    assert_eq!(matcher.find_chain(&ClientHelloInfo::default(), &announced), Some(0), "peer matched first");
    let twice = |ports: &[u16]| ChainMatch { client_ports: ports.to_vec(), ..ChainMatch::default() };
    let same = vec![client(twice(&[1, 2])), client(twice(&[2, 3]))];
    assert!(FilterChainMatcher::new(&listener(same, false)).is_err());
}

#[test]
fn only_what_the_chains_of_a_destination_need_is_looked_at() {
    let port = |number, chain: Chain| {
        let accepts = ChainMatch { destination_port: Some(number), ..chain.accepts.clone() };
        Chain { accepts, ..chain }
    };
    let plain = Some(Transport::Plain);
    let mut listener = listener(
        vec![
            port(1, chain(&[], None, &[])),
            port(2, chain(&[], Some(Transport::Tls), &["istio"])),
            port(3, chain(&[], plain, &["http/1.1", "h2c"])),
            port(4, chain(&[], Some(Transport::Tls), &["http/1.1"])),
            port(5, chain(&[], plain, &["h2c"])),
        ],
        true,
    );
    listener.inspection.http = Ports(vec![(0, 4)]);
    listener.inspection.tls = Ports(vec![(0, 2), (4, 9)]);
    let matcher = FilterChainMatcher::new(&listener).expect("no two alike");
    for (port, tls, http) in [
        (1, false, false),
        (2, true, false),
        (3, false, true),
        (4, true, false),
        (5, true, false),
        (6, false, false),
    ] {
        let local = SocketAddr::from(([10, 0, 0, 1], port));
        assert_eq!(matcher.look(local), Look { tls, http }, "{port}");
    }
    assert!(matcher.look(address("10.0.0.1:1")).is_nothing());
}
