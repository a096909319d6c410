//! Client identity: from its certificate, or from the kernel.

use boring::{nid::Nid, x509::X509Ref};
use quadrille_config::model::key_server::NameKind;
use std::{
    borrow::Cow,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// Identity of a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity(Vec<Name>);

/// Name of a client: a subject alternative name of its certificate (RFC 5280 section 4.2.1.6), or a user of this
/// machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// DNS name, in lower case.
    Dns(String),
    /// URI, such as a SPIFFE ID.
    Uri(String),
    /// An electronic mail address.
    Email(String),
    /// An IP address.
    Ip(IpAddr),
    /// Common name, for certificates without alternative names.
    Common(String),
    /// A user id, over a Unix socket.
    Uid(u32),
}

impl Identity {
    /// Returns the identity in a verified certificate.
    pub fn of_certificate(certificate: &X509Ref) -> Self {
        let alternatives = certificate.subject_alt_names();
        let mut names: Vec<Name> = alternatives
            .iter()
            .flatten()
            .filter_map(|name| {
                let dns = name.dnsname().map(|dns| Name::Dns(dns.to_ascii_lowercase()));
                let uri = || name.uri().map(|uri| Name::Uri(uri.to_owned()));
                let email = || name.email().map(|email| Name::Email(email.to_owned()));
                let ip = || name.ipaddress().and_then(ip).map(Name::Ip);
                dns.or_else(uri).or_else(email).or_else(ip)
            })
            .collect();
        if names.is_empty() {
            let common = certificate.subject_name().entries_by_nid(Nid::COMMONNAME).next();
            names.extend(
                common.and_then(|entry| Some(Name::Common(entry.data().as_utf8().ok()?.to_string()))),
            );
        }
        Self(names)
    }

    /// Returns the identity of a process of this machine.
    pub fn of_user(uid: u32) -> Self {
        Self(vec![Name::Uid(uid)])
    }

    /// All names.
    pub fn names(&self) -> &[Name] {
        &self.0
    }
}

/// Shows the first name, for logs and metrics.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.first() {
            Some(name) => name.fmt(f),
            None => f.write_str("(no name)"),
        }
    }
}

impl Name {
    /// Kind of the name.
    pub(super) fn kind(&self) -> NameKind {
        match self {
            Self::Dns(_) => NameKind::Dns,
            Self::Uri(_) => NameKind::Uri,
            Self::Email(_) => NameKind::Email,
            Self::Ip(_) => NameKind::Ip,
            Self::Common(_) => NameKind::Common,
            Self::Uid(_) => NameKind::Uid,
        }
    }

    /// Text of the name in policies, without the kind.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Dns(text) | Self::Uri(text) | Self::Email(text) | Self::Common(text) => text.into(),
            Self::Ip(address) => address.to_string().into(),
            Self::Uid(uid) => uid.to_string().into(),
        }
    }
}

/// Format for logs and metrics.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dns(text) | Self::Uri(text) | Self::Email(text) | Self::Common(text) => {
                write!(f, "{}", text.escape_debug())
            }
            Self::Ip(address) => address.fmt(f),
            Self::Uid(uid) => write!(f, "uid:{uid}"),
        }
    }
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into()),
        16 => <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into()),
        _ => None,
    }
}
