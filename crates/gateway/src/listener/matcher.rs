//! Which chain a connection belongs to, looked up as Envoy does: by name, then transport, then protocol.

use crate::{host_map::HostMap, tls::client_hello::ClientHelloInfo};
use quadrille_config::{
    Diagnostic, Problem,
    model::{Chain, Listener, Transport},
};
use std::collections::HashMap;

/// A listener's chains, by what they accept.
#[derive(Debug, Default)]
pub(crate) struct FilterChainMatcher {
    /// There is but one, and it takes all: nobody needs to look.
    only: bool,
    names: HostMap<Transports>,
    any: Transports,
    default_chain: Option<usize>,
}

#[derive(Debug, Default)]
struct Transports {
    tls: Option<Protocols>,
    plain: Option<Protocols>,
    any: Option<Protocols>,
}

#[derive(Debug, Default)]
struct Protocols {
    named: HashMap<String, usize>,
    any: Option<usize>,
}

impl FilterChainMatcher {
    /// Numbers are those of [`Listener::all_chains`].
    pub(crate) fn new(listener: &Listener) -> Result<Self, Vec<Diagnostic>> {
        let mut matcher = Self {
            only: matches!(&listener.chains[..], [only] if only.accepts.is_any()),
            default_chain: listener.default_chain.as_ref().map(|_| listener.chains.len()),
            ..Self::default()
        };
        let mut problems = Vec::new();
        if listener.chains.is_empty() && listener.default_chain.is_none() {
            problems.push(Diagnostic::new(
                &listener.place,
                Problem::new("the listener has no filter chain", "give it one"),
            ));
        }
        for (index, chain) in listener.chains.iter().enumerate() {
            if let Err(before) = matcher.insert(chain, index) {
                let other = &listener.chains[before].place;
                let message = Problem::new(
                    format!("the chain at {other} accepts the same connections"),
                    "let them differ in server names, transport or application protocols",
                );
                problems.push(Diagnostic::new(&chain.place, message));
            }
        }
        if problems.is_empty() { Ok(matcher) } else { Err(problems) }
    }

    /// The only chain, where there is no choice.
    pub(crate) fn only_chain(&self) -> Option<usize> {
        self.only.then_some(0)
    }

    /// The chain for such a connection.
    pub(crate) fn find_chain(&self, hello: &ClientHelloInfo) -> Option<usize> {
        self.find(hello.tls, hello.server_name.as_deref().unwrap_or_default(), &hello.protocols)
    }

    /// The chain for connections with this server name, in lower case, and these application protocols.
    pub(crate) fn find(&self, tls: bool, name: &str, offered: &[String]) -> Option<usize> {
        let transports =
            self.names.exact(name).or_else(|| self.names.longest_wildcard(name)).unwrap_or(&self.any);
        let own = if tls { &transports.tls } else { &transports.plain };
        let protocols = own.as_ref().or(transports.any.as_ref());
        let chain = protocols.and_then(|protocols| {
            let named = offered.iter().find_map(|name| protocols.named.get(name));
            named.copied().or(protocols.any)
        });
        chain.or(self.default_chain)
    }

    /// On failure, which chain has the place already.
    fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        let accepts = &chain.accepts;
        if accepts.server_names.is_empty() {
            return self.any.insert(chain, index);
        }
        accepts.server_names.iter().try_for_each(|name| {
            let name = name.to_ascii_lowercase();
            let transports = if name == "*" { &mut self.any } else { self.names.entry(&name) };
            transports.insert(chain, index)
        })
    }
}

impl Transports {
    fn insert(&mut self, chain: &Chain, index: usize) -> Result<(), usize> {
        let protocols = match chain.accepts.transport {
            Some(Transport::Tls) => &mut self.tls,
            Some(Transport::Plain) => &mut self.plain,
            None => &mut self.any,
        };
        let protocols = protocols.get_or_insert_default();
        if chain.accepts.application_protocols.is_empty() {
            return match protocols.any.replace(index) {
                Some(before) if before != index => Err(before),
                _ => Ok(()),
            };
        }
        chain.accepts.application_protocols.iter().try_for_each(|name| {
            match protocols.named.insert(name.clone(), index) {
                Some(before) if before != index => Err(before),
                _ => Ok(()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::{ChainMatch, Place, Serve};

    fn chain(names: &[&str], transport: Option<Transport>, protocols: &[&str]) -> Chain {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let accepts =
            ChainMatch { server_names: owned(names), transport, application_protocols: owned(protocols) };
        Chain { accepts, ..Chain::new(None, Serve::Tcp(Vec::new()), Place::builtin()) }
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

    /// Each step decides for good, as in Envoy.
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
            let matcher = FilterChainMatcher::new(&listener(chains.clone(), otherwise.is_some()))
                .expect("no two alike");
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
                assert_eq!(matcher.find_chain(&hello), expected, "{hello:?}");
            }
            assert_eq!(matcher.only_chain(), None);
        }
    }

    #[test]
    fn one_chain_for_all_needs_no_look() {
        let matcher =
            FilterChainMatcher::new(&listener(vec![chain(&[], None, &[])], false)).expect("one chain");
        assert_eq!(matcher.only_chain(), Some(0));
        assert_eq!(matcher.find_chain(&hello("a", &["b"])), Some(0));
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
            let problems =
                FilterChainMatcher::new(&listener(vec![one, other], false)).expect_err("two alike");
            assert!(problems[0].problem.message.contains("accepts the same connections"), "{problems:?}");
        }
        let apart = vec![chain(&["a"], Some(Transport::Tls), &[]), chain(&["a"], None, &[])];
        assert!(FilterChainMatcher::new(&listener(apart, false)).is_ok());
        assert!(FilterChainMatcher::new(&listener(Vec::new(), false)).is_err());
    }
}
