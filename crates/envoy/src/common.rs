//! Messages used in several places: bytes, addresses, text matchers, durations.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema, values,
};
use base64ct::{Base64, Encoding};
use quadrille_config::{
    Problem,
    model::{Expression, Network, Source, TextMatch, TextRule, whole_within},
    unix_socket::UNIX,
};
use std::{
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};
use zeroize::Zeroizing;

/// A network address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP: an IP address or a name, and a port.
    Socket {
        /// An IP address or a host name.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Pipe(PathBuf),
}

impl Address {
    /// Returns `host:port`, with brackets around an IPv6 address; or the path of a Unix socket.
    pub fn text(&self) -> String {
        match self {
            Self::Socket { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Self::Socket { host, port } => format!("{host}:{port}"),
            Self::Pipe(path) => path.display().to_string(),
        }
    }

    /// Returns the address in the model's format.
    pub(crate) fn as_server(&self) -> String {
        match self {
            Self::Socket { .. } => self.text(),
            Self::Pipe(_) => format!("{UNIX}{}", self.text()),
        }
    }
}

/// Transport protocol of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Tcp,
    Udp,
}

/// Reads `envoy.config.core.v3.Address`, which must be TCP.
pub(crate) fn address(field: &Field<'_>) -> Option<Address> {
    let (address, protocol) = any_address(field)?;
    match protocol {
        Protocol::Tcp => Some(address),
        Protocol::Udp => field.fail(Problem::new("only TCP is supported here", "write `protocol: TCP`")),
    }
}

/// Reads `envoy.config.core.v3.Address`.
fn any_address(field: &Field<'_>) -> Option<(Address, Protocol)> {
    let message = field.message(&schema::ADDRESS)?;
    match message.one_of(&["socket_address", "pipe"]) {
        Some(("pipe", pipe)) => {
            let path = pipe.message(&schema::PIPE)?.require("path")?.text()?;
            Some((Address::Pipe(path.into()), Protocol::Tcp))
        }
        Some((_, socket)) => socket_address(&socket.message(&schema::SOCKET_ADDRESS)?),
        None => field.fail("`socket_address` is missing"),
    }
}

fn socket_address(socket: &Message<'_>) -> Option<(Address, Protocol)> {
    const PROTOCOLS: &[(&str, u32, Protocol)] = &[("TCP", 0, Protocol::Tcp), ("UDP", 1, Protocol::Udp)];
    let protocol = match socket.get("protocol") {
        Some(field) => field.parse(values::enumeration(PROTOCOLS))?,
        None => Protocol::Tcp,
    };
    socket.get("ipv4_compat");
    let host = socket.require("address")?.text()?.to_owned();
    let port = socket.require("port_value")?.parse(|text| {
        let port = values::number(text)?;
        u16::try_from(port).map_err(|_| Problem::new(format!("{port} is not a port"), "ports are 0 to 65535"))
    })?;
    Some((Address::Socket { host, port }, protocol))
}

/// Reads a TCP address of this machine.
pub(crate) fn own_address(field: &Field<'_>) -> Option<SocketAddr> {
    own(field, address(field)?)
}

/// Reads an address of this machine, and its protocol.
pub(crate) fn listener_address(field: &Field<'_>) -> Option<(SocketAddr, Protocol)> {
    let (address, protocol) = any_address(field)?;
    Some((own(field, address)?, protocol))
}

fn own(field: &Field<'_>, address: Address) -> Option<SocketAddr> {
    match address {
        Address::Pipe(_) => {
            field.fail(Problem::new("listeners cannot use Unix sockets", "write a `socket_address`"))
        }
        Address::Socket { host, port } => match host.parse::<IpAddr>() {
            Ok(ip) => Some((ip, port).into()),
            Err(_) => field.fail(format!(
                "{} is not an IP address, which a listener requires",
                quadrille_config::quote(&host)
            )),
        },
    }
}

/// Reads an `envoy.config.core.v3.SocketAddress` for outgoing connections.
pub(crate) fn source_address(field: &Field<'_>) -> Option<IpAddr> {
    let message = field.message(&schema::SOCKET_ADDRESS)?;
    if message.number("port_value").is_some_and(|port| port != 0) {
        return field.fail(Problem::new("refused: one port allows one connection", "write `port_value: 0`"));
    }
    message.require("address")?.parse(|text| text.parse().map_err(|_| "not an IP address".into()))
}

/// `envoy.config.core.v3.CidrRange`.
pub(crate) fn cidr_range(field: &Field<'_>) -> Option<Network> {
    let message = field.message(&schema::CIDR_RANGE)?;
    let address: IpAddr = message
        .require("address_prefix")?
        .parse(|text| text.parse().map_err(|_| "not an IP address".into()))?;
    let prefix = message.number("prefix_len").unwrap_or_default();
    match Network::around(address, prefix) {
        Some(network) => Some(network),
        None => field.fail(format!("an address like {address} does not have {prefix} bits")),
    }
}

/// Reads the `timeout` of a service; unlimited waiting is not allowed.
pub(crate) fn time_limit(message: &Message<'_>, preset: Duration) -> Option<Duration> {
    let Some(field) = message.get("timeout") else { return Some(preset) };
    let time = duration(&field)?;
    if time.is_zero() { field.fail("an unlimited timeout is not supported") } else { Some(time) }
}

/// Reads `envoy.config.core.v3.DataSource`: bytes that may be a private key.
pub(crate) fn data_source(field: &Field<'_>) -> Option<Source> {
    let message = field.message(&schema::DATA_SOURCE)?;
    match message.one_of(&["filename", "inline_bytes", "inline_string", "environment_variable"]) {
        Some(("filename", file)) => match file.text()? {
            "" => file.fail(Problem::new("the path is empty", "write the path of a file")),
            path if !field.may_name(Path::new(path)) => file.fail(Problem::new(
                "refused: a control plane names a local file",
                "send it as `inline_bytes`, or list its directory: --control-plane-files DIRECTORY",
            )),
            path => Some(Source::File(path.into())),
        },
        Some(("inline_bytes", bytes)) => {
            let decoded = bytes.parse(base64)?;
            Some(Source::inline(decoded.to_vec()))
        }
        Some(("inline_string", text)) => Some(Source::inline(text.text()?)),
        Some((_, variable)) if !field.is_trusted() => variable.fail(Problem::new(
            "refused: a control plane names an environment variable",
            "send it as `inline_string`",
        )),
        Some((_, variable)) => {
            let name = variable.text()?;
            match std::env::var(name).map(Zeroizing::new) {
                Ok(value) => Some(Source::inline(value.as_bytes())),
                Err(_) => variable.fail(format!("the environment variable `{name}` is not set")),
            }
        }
        None => field.fail(Problem::new(
            "no field is set",
            "write `filename`, `inline_string`, `inline_bytes` or `environment_variable`",
        )),
    }
}

/// Decodes bytes in protobuf's JSON format.
pub(crate) fn base64(text: &str) -> Result<Zeroizing<Vec<u8>>, Problem> {
    // Base64 in YAML is often folded over several lines.
    let joined: Zeroizing<String> = Zeroizing::new(text.split_ascii_whitespace().collect());
    Base64::decode_vec(&joined).map(Zeroizing::new).map_err(|_| "not base64".into())
}

/// Reads `google.protobuf.Duration`, as text or as a message.
pub(crate) fn duration(field: &Field<'_>) -> Option<Duration> {
    if !field.is_mapping() {
        return field.parse(values::duration);
    }
    let part = |name: &str| match field.entry(name) {
        Some(part) => part.parse(|text| text.parse::<u64>().map_err(|_| "not a non-negative number".into())),
        None => Some(0),
    };
    let (seconds, nanos) = (part("seconds")?, part("nanos")?);
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match nanos {
        Some(nanos) => Some(Duration::new(seconds.min(LONGEST), nanos)),
        None => field.fail("`nanos` is not below 1000000000"),
    }
}

/// Maximum in seconds: larger values are not meaningful, and adding it to a deadline does not overflow.
const LONGEST: u64 = 366 * 24 * 3600;

impl Message<'_> {
    /// Reads an optional duration.
    pub(crate) fn duration(&self, name: &'static str) -> Option<Duration> {
        duration(&self.get(name)?)
    }

    /// Reads an optional whole number.
    pub(crate) fn number(&self, name: &'static str) -> Option<u32> {
        self.read(name, values::number)
    }
}

/// Reads `envoy.type.matcher.v3.StringMatcher`.
pub(crate) fn string_matcher(field: &Field<'_>) -> Option<TextMatch> {
    let message = field.message(&schema::STRING_MATCHER)?;
    let rule = match message.one_of(&["exact", "prefix", "suffix", "contains", "safe_regex"]) {
        Some(("safe_regex", regex)) => TextRule::Regex(regex_matcher(&regex)?),
        Some((kind, text)) => {
            let text = text.text()?.to_owned();
            match kind {
                "exact" => TextRule::Exact(text),
                "prefix" => TextRule::Prefix(text),
                "suffix" => TextRule::Suffix(text),
                _ => TextRule::Contains(text),
            }
        }
        None => {
            return field.fail(Problem::new(
                "no field is set",
                "write `exact`, `prefix`, `suffix`, `contains` or `safe_regex`",
            ));
        }
    };
    Some(TextMatch { rule, ignore_case: message.flag("ignore_case") })
}

/// Reads `envoy.type.matcher.v3.RegexMatcher`: an expression that matches the whole text.
pub(crate) fn regex_matcher(field: &Field<'_>) -> Option<Expression> {
    let message = field.message(&schema::REGEX_MATCHER)?;
    expression(&message.require("regex")?, whole_within)
}

/// Compiles an expression, within the cost limit of the document.
pub(crate) fn expression(
    field: &Field<'_>,
    compile: fn(&str, usize) -> Result<Expression, regex::Error>,
) -> Option<Expression> {
    field.parse(|text| match field.allowance() {
        Some(allowance) => allowance.compile(|bytes| compile(text, bytes), not_an_expression),
        None => compile(text, usize::MAX).map_err(|error| not_an_expression(&error)),
    })
}

fn not_an_expression(error: &regex::Error) -> Problem {
    // The last line of the crate's diagram is the reason.
    let reason = error.to_string();
    let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
    format!("not a supported regular expression: {reason}").into()
}
