//! `quadrille cert list`: all certificates of a configuration.

use crate::columns::{aligned, days_left};
use boring::x509::{GeneralNameRef, X509};
use quadrille_acme::Plan;
use quadrille_config::model::{CertificateSource, Gateway, KeySource, Listener, Source};
use quadrille_engine::PublicKey;
use quadrille_pem::{certificates, common_name, unix_time};
use quadrille_unix_time::{DAY, rfc3339, unix_now};
use serde_json::{Value, json};
use std::net::IpAddr;

/// A certificate of the configuration.
pub(super) struct Listed {
    /// File of its chain, or `(inline)`.
    chain: String,
    /// Addresses of the listeners that have it.
    listeners: Vec<String>,
    /// Location of its private key.
    key: String,
    /// Whether it is ordered by ACME.
    ordered: bool,
    /// The certificate, or the reason why it cannot be read.
    leaf: Result<Leaf, String>,
}

/// Contents of a certificate.
struct Leaf {
    names: Vec<String>,
    issuer: String,
    key_type: String,
    not_before: i64,
    not_after: i64,
}

/// Returns all certificates of a configuration, in its order, with those granted on demand.
pub(super) fn of_gateway(gateway: &Gateway, plan: Option<&Plan>) -> Vec<Listed> {
    let mut listed: Vec<(&CertificateSource, Listed)> = Vec::new();
    for listener in &gateway.listeners {
        let certificates = Listener::all_chains(listener).filter_map(|chain| chain.tls.as_ref());
        for source in certificates.flat_map(|tls| &tls.certificates) {
            let address = listener.address.to_string();
            match listed.iter_mut().find(|(known, _)| known.chain == source.chain && known.key == source.key)
            {
                Some((_, known)) if known.listeners.contains(&address) => {}
                Some((_, known)) => known.listeners.push(address),
                None => listed.push((source, Listed::new(source, address))),
            }
        }
    }
    let mut listed: Vec<_> = listed.into_iter().map(|(_, listed)| listed).collect();
    let configured = |listed: &[Listed], file: &str| listed.iter().any(|known| known.chain == file);
    for wanted in plan.into_iter().flat_map(|plan| &plan.wanted) {
        let source = Source::File(wanted.file.clone());
        if !configured(&listed, &source.to_string()) {
            let key = if wanted.order.keyless.is_some() { "key server" } else { "its file" };
            let (chain, leaf) = (source.to_string(), Leaf::read(&source));
            listed.push(Listed { chain, listeners: Vec::new(), key: key.to_owned(), ordered: true, leaf });
        }
    }
    listed
}

/// Returns the certificates as a table.
pub(super) fn table(all: &[Listed]) -> String {
    let titles = ["NAMES", "ISSUER", "KEY", "EXPIRES", "LEFT", "LISTENER", "PRIVATE KEY", "CHAIN"];
    let row = |one: &Listed| {
        let leaf = one.leaf.as_ref().ok();
        let of = |text: fn(&Leaf) -> String| leaf.map_or_else(|| "-".to_owned(), text);
        let left = match &one.leaf {
            Ok(leaf) => days_left(leaf.not_after),
            Err(_) if one.ordered => "not issued".to_owned(),
            Err(_) => "not readable".to_owned(),
        };
        vec![
            of(|leaf| leaf.names.join(", ")),
            of(|leaf| leaf.issuer.clone()),
            of(|leaf| leaf.key_type.clone()),
            of(|leaf| rfc3339(leaf.not_after)),
            left,
            if one.listeners.is_empty() { "on demand".to_owned() } else { one.listeners.join(", ") },
            one.key.clone(),
            if one.ordered { format!("{} (ACME)", one.chain) } else { one.chain.clone() },
        ]
    };
    let rows: Vec<_> =
        std::iter::once(titles.map(str::to_owned).to_vec()).chain(all.iter().map(row)).collect();
    aligned(&rows)
}

/// Returns the reasons why certificates cannot be read. Those that are ordered may not be issued yet.
pub(super) fn problems(all: &[Listed]) -> Vec<String> {
    let problem = |one: &Listed| {
        let problem = one.leaf.as_ref().err().filter(|_| !one.ordered)?;
        Some(format!("{}: {problem}", one.chain))
    };
    all.iter().filter_map(problem).collect()
}

/// Returns the certificates as a JSON list.
pub(super) fn json(all: &[Listed]) -> Value {
    let one = |one: &Listed| {
        let leaf = one.leaf.as_ref().ok();
        json!({
            "names": leaf.map(|leaf| &leaf.names),
            "issuer": leaf.map(|leaf| &leaf.issuer),
            "key_type": leaf.map(|leaf| &leaf.key_type),
            "not_before": leaf.map(|leaf| rfc3339(leaf.not_before)),
            "not_after": leaf.map(|leaf| rfc3339(leaf.not_after)),
            "days_left": leaf.map(|leaf| (leaf.not_after - unix_now()).div_euclid(DAY)),
            "listeners": one.listeners,
            "private_key": one.key,
            "chain": one.chain,
            "acme": one.ordered,
            "problem": one.leaf.as_ref().err(),
        })
    };
    all.iter().map(one).collect()
}

impl Listed {
    fn new(source: &CertificateSource, listener: String) -> Self {
        Self {
            chain: source.chain.to_string(),
            listeners: vec![listener],
            key: key(&source.key),
            ordered: source.order.is_some(),
            leaf: Leaf::read(&source.chain),
        }
    }
}

/// Says where a private key is.
fn key(source: &KeySource) -> String {
    match source {
        KeySource::Pem(source) => source.to_string(),
        KeySource::Keyless(keyless) => {
            let servers: Vec<_> = keyless.servers.iter().map(ToString::to_string).collect();
            format!("key server {}", servers.join(", "))
        }
        KeySource::Pkcs11(key) => key.to_string(),
    }
}

impl Leaf {
    fn read(source: &Source) -> Result<Self, String> {
        let text = source.read().map_err(|error| error.to_string())?;
        let chain = certificates(&text).map_err(|damage| damage.to_string())?;
        chain.first().map(Self::of).ok_or_else(|| "it contains no certificate".to_owned())
    }

    fn of(certificate: &X509) -> Self {
        let public = certificate.public_key().ok().and_then(|public| PublicKey::from_pkey(public).ok());
        Self {
            names: names(certificate),
            issuer: common_name(certificate.issuer_name()),
            key_type: public.map_or_else(|| "unknown".to_owned(), |public| public.key_type().to_string()),
            not_before: unix_time(certificate.not_before()),
            not_after: unix_time(certificate.not_after()),
        }
    }
}

/// Returns the DNS names and IP addresses of a certificate, or else the common name.
fn names(certificate: &X509) -> Vec<String> {
    let alternative = certificate.subject_alt_names();
    let name = |name: &GeneralNameRef| {
        let address = || match *name.ipaddress()? {
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d]).to_string()),
            ref bytes => Some(IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        };
        name.dnsname().map(str::to_owned).or_else(address)
    };
    let names: Vec<_> = alternative.iter().flatten().filter_map(name).collect();
    if names.is_empty() { vec![common_name(certificate.subject_name())] } else { names }
}
