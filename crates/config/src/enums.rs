//! Enumerated values, such as `round_robin` or `1.2`.
//!
//! One table for each type is used by the configuration file, the command line and the page that shows the
//! configuration in effect.

use crate::{
    model::{
        AcmeChallenge, AcmeFleet, AcmeKeyType, Ambiguous, BackendChoice, Balance, ContentCoding, Group,
        KeyServerUse, LogField, LookupFamily, Mode, OcspStapling, Problem, ProxyProtocolIn, ProxyProtocolOut,
        SentPath, TraceParents, TracingProtocol, Transport, UpstreamProtocol, Version, key_server::Protocol,
    },
    suggest::{nearest, quote},
};

/// A type whose values have names.
pub trait Word: Copy + PartialEq + 'static {
    /// The kind of value, with its article: `a TLS version`.
    const WHAT: &'static str;

    /// All names; the first of each value is the one that is shown. Case is ignored.
    const WORDS: &'static [(&'static str, Self)];
}

/// Parses the name of a value.
///
/// # Errors
/// For an unknown name; the message lists the known ones.
pub fn word<T: Word>(text: &str) -> Result<T, Problem> {
    let found = T::WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = names::<T>().collect();
        let remedy = match nearest(text, names.iter().copied()) {
            Some(near) if text.len() > 3 => format!("did you mean `{near}`?"),
            _ => format!("use {}", one_of(&names)),
        };
        Problem::new(format!("{} is not {}", quote(text), T::WHAT), remedy)
    })
}

/// Parses `on` or `off`.
pub fn switch(text: &str) -> Result<bool, Problem> {
    word(text)
}

/// Returns the name that is shown for a value.
pub fn name<T: Word>(value: T) -> &'static str {
    T::WORDS.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Returns the names that are shown, in the order of the table.
pub fn names<T: Word>() -> impl Iterator<Item = &'static str> {
    T::WORDS.iter().filter(|(text, value)| name(*value) == *text).map(|(text, _)| *text)
}

fn one_of(names: &[&str]) -> String {
    match names {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

impl Word for TracingProtocol {
    const WHAT: &'static str = "an OTLP protocol";
    const WORDS: &'static [(&'static str, Self)] = &[("grpc", Self::Grpc), ("http", Self::Http)];
}

impl Word for TraceParents {
    const WHAT: &'static str = "a choice of trace parents";
    const WORDS: &'static [(&'static str, Self)] =
        &[("trusted_proxies", Self::TrustedProxies), ("all", Self::All), ("off", Self::Off)];
}

impl Word for Transport {
    const WHAT: &'static str = "a transport";
    const WORDS: &'static [(&'static str, Self)] = &[("tls", Self::Tls), ("plain", Self::Plain)];
}

/// `on` or `off`, in every spelling that YAML has defined.
impl Word for bool {
    const WHAT: &'static str = "a switch";
    const WORDS: &'static [(&'static str, Self)] =
        &[("on", true), ("off", false), ("true", true), ("false", false), ("yes", true), ("no", false)];
}

impl Word for Protocol {
    const WHAT: &'static str = "a mode of the keyless protocol";
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("batched", Self::Batched), ("compatible", Self::Compatible)];
}

impl Word for AcmeChallenge {
    const WHAT: &'static str = "a challenge";
    const WORDS: &'static [(&'static str, Self)] =
        &[("tls-alpn-01", Self::TlsAlpn01), ("http-01", Self::Http01), ("dns-01", Self::Dns01)];
}

impl Word for AcmeFleet {
    const WHAT: &'static str = "a way to share certificates";
    const WORDS: &'static [(&'static str, Self)] =
        &[("required", Self::Required), ("preferred", Self::Preferred), ("off", Self::Off)];
}

impl Word for AcmeKeyType {
    const WHAT: &'static str = "a type of key";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("ecdsa-p256", Self::EcdsaP256),
        ("ecdsa-p384", Self::EcdsaP384),
        ("rsa-2048", Self::Rsa2048),
        ("rsa-3072", Self::Rsa3072),
        ("rsa-4096", Self::Rsa4096),
    ];
}

impl Word for OcspStapling {
    const WHAT: &'static str = "a mode of OCSP stapling";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("on", Self::On),
        ("off", Self::Off),
        ("must_staple", Self::MustStaple),
        ("true", Self::On),
        ("false", Self::Off),
        ("yes", Self::On),
        ("no", Self::Off),
    ];
}

impl Word for ContentCoding {
    const WHAT: &'static str = "an algorithm";
    const WORDS: &'static [(&'static str, Self)] =
        &[("zstd", Self::Zstd), ("br", Self::Brotli), ("gzip", Self::Gzip), ("brotli", Self::Brotli)];
}

impl Word for LogField {
    const WHAT: &'static str = "a field of the access log";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("client", Self::Client),
        ("user", Self::User),
        ("method", Self::Method),
        ("host", Self::Host),
        ("path", Self::Path),
        ("query", Self::Query),
        ("user_agent", Self::UserAgent),
        ("request_id", Self::RequestId),
        ("protocol", Self::Protocol),
        ("status", Self::Status),
        ("bytes", Self::Bytes),
        ("bytes_in", Self::BytesIn),
        ("request_us", Self::RequestTime),
        ("connection_us", Self::ConnectionTime),
        ("upstream", Self::Upstream),
        ("upstream_server", Self::UpstreamServer),
        ("upstream_us", Self::UpstreamTime),
        ("error", Self::Error),
        ("tls_version", Self::TlsVersion),
        ("cipher", Self::Cipher),
        ("sni", Self::Sni),
        ("resumed", Self::Resumed),
        ("handshake_us", Self::HandshakeTime),
        ("key_wait_us", Self::KeyWaitTime),
        ("key_us", Self::KeyTime),
        ("batch", Self::Batch),
    ];
}

impl Word for KeyServerUse {
    const WHAT: &'static str = "a use of key servers";
    const WORDS: &'static [(&'static str, Self)] = &[("always", Self::Always), ("overflow", Self::Overflow)];
}

impl Word for Version {
    const WHAT: &'static str = "a TLS version";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("1.0", Self::Tls10),
        ("1.1", Self::Tls11),
        ("1.2", Self::Tls12),
        ("1.3", Self::Tls13),
        ("TLSv1", Self::Tls10),
        ("TLSv1.0", Self::Tls10),
        ("TLSv1.1", Self::Tls11),
        ("TLSv1.2", Self::Tls12),
        ("TLSv1.3", Self::Tls13),
    ];
}

impl Word for Group {
    const WHAT: &'static str = "a key-exchange group";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("X25519MLKEM768", Self::X25519MlKem768),
        ("X25519", Self::X25519),
        ("P-256", Self::P256),
        ("P-384", Self::P384),
        ("P-521", Self::P521),
        ("P256", Self::P256),
        ("P384", Self::P384),
        ("P521", Self::P521),
        ("secp256r1", Self::P256),
        ("secp384r1", Self::P384),
        ("secp521r1", Self::P521),
        ("prime256v1", Self::P256),
    ];
}

impl Word for Mode {
    const WHAT: &'static str = "a mode";
    const WORDS: &'static [(&'static str, Self)] = &[("http", Self::Http), ("tcp", Self::Tcp)];
}

impl Word for Ambiguous {
    const WHAT: &'static str = "an action for such a path";
    const WORDS: &'static [(&'static str, Self)] = &[("reject", Self::Reject), ("keep", Self::Keep)];
}

impl Word for SentPath {
    const WHAT: &'static str = "a form of the path";
    const WORDS: &'static [(&'static str, Self)] =
        &[("normalized", Self::Normalized), ("received", Self::Received)];
}

impl Word for ProxyProtocolIn {
    const WHAT: &'static str = "a way to receive the PROXY protocol";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("required", Self::Required),
        ("false", Self::Off),
        ("no", Self::Off),
        ("on", Self::Required),
        ("true", Self::Required),
        ("yes", Self::Required),
    ];
}

impl Word for ProxyProtocolOut {
    const WHAT: &'static str = "a version of the PROXY protocol";
    const WORDS: &'static [(&'static str, Self)] =
        &[("off", Self::Off), ("v1", Self::V1), ("v2", Self::V2), ("false", Self::Off), ("no", Self::Off)];
}

impl Word for LookupFamily {
    const WHAT: &'static str = "a choice of address families";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("all", Self::All),
        ("auto", Self::Auto),
        ("v4_only", Self::V4Only),
        ("v6_only", Self::V6Only),
        ("v4_preferred", Self::V4Preferred),
    ];
}

impl Word for Balance {
    const WHAT: &'static str = "a way to choose a server";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("round_robin", Self::RoundRobin),
        ("random", Self::Random),
        ("least_request", Self::LeastRequest),
        ("client_ip", Self::ClientIp),
        ("hash", Self::Hash),
    ];
}

impl Word for UpstreamProtocol {
    const WHAT: &'static str = "a protocol";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("auto", Self::Auto),
        ("http1", Self::Http1),
        ("http2", Self::Http2),
        ("of_request", Self::OfRequest),
        ("http/1.1", Self::Http1),
        ("h2", Self::Http2),
    ];
}

impl Word for BackendChoice {
    const WHAT: &'static str = "a backend";
    const WORDS: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("gpu", Self::Gpu), ("lanes", Self::Lanes), ("scalar", Self::Scalar)];
}
