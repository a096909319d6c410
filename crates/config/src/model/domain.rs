//! Patterns for hosts.

use std::fmt;

/// A pattern for hosts, in lower case. Among matching patterns, exact ones precede, then the longest suffix, then the
/// longest prefix, then `Any`. `Below` is between exact ones and suffixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// This host: `example.com`.
    Exact(String),
    /// Longer hosts with this suffix: `.example.com` for `*.example.com`; `-a.example` for `*-a.example`.
    Suffix(String),
    /// Hosts with one more label: `example.com` for `*.example.com`, as in certificates.
    Below(String),
    /// Longer hosts with this prefix: `example.` for `example.*`.
    Prefix(String),
    /// Every host.
    Any,
}

impl Domain {
    /// Returns whether it matches a host, which is in lower case and without a port.
    pub fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => host == name,
            Self::Suffix(suffix) => host.len() > suffix.len() && host.ends_with(suffix.as_str()),
            Self::Below(parent) => {
                host.split_once('.').is_some_and(|(label, rest)| !label.is_empty() && rest == parent)
            }
            Self::Prefix(prefix) => host.len() > prefix.len() && host.starts_with(prefix.as_str()),
            Self::Any => true,
        }
    }

    /// Parses Envoy's format: `example.com`, `*.example.com`, `example.*`, `*`.
    pub fn wildcard(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        if text == "*" {
            return Self::Any;
        }
        match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(suffix), _) => Self::Suffix(suffix.to_owned()),
            (_, Some(prefix)) => Self::Prefix(prefix.to_owned()),
            _ => Self::Exact(text),
        }
    }
}

/// Writes Envoy's format; `Below` is written like a suffix.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Suffix(suffix) => write!(f, "*{suffix}"),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Any => f.write_str("*"),
        }
    }
}
