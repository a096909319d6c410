//! Timeouts and limits of a listener.

use crate::{
    Field,
    file::{
        schema::{Key, Preset, Section},
        shown::{or_off, time},
    },
    model::{Limits, Mode, Problem, RequestLimits, Timeouts},
    size::{body_limit, header_limit, show_size, show_size_or_off, url_limit},
    values::{count, timeout, timeout_or_off},
};
use serde_json::Value;
use std::num::NonZeroUsize;

/// Limits of a listener: of its socket, and of HTTP requests.
#[derive(Default)]
pub(super) struct ListenerLimits {
    pub(super) socket: Limits,
    pub(super) requests: RequestLimits,
    /// The listener's mode; in TCP mode, requests are not parsed.
    pub(super) mode: Mode,
}

pub(super) const TIMEOUTS: Section<Timeouts> = Section {
    path: "listeners[].timeouts",
    about: "Timeouts, after which slow clients are disconnected. Longer times allow slower clients, and let idle \
            ones hold memory for longer.",
    keys: &[
        Key::new(
            "handshake",
            "duration",
            Preset::Is("10s"),
            "Time from accepting a connection to the end of its TLS handshake, a PROXY header included.",
            |field, timeouts| field.set(&mut timeouts.handshake, timeout),
            |timeouts| time(timeouts.handshake),
        ),
        Key::new(
            "handshake_deadline",
            "duration, or `off`",
            Preset::Is("3s"),
            "Time from accepting a connection after which its client is assumed to have left. A handshake that \
                    cannot finish by then is refused at its ClientHello, before it costs CPU. Under overload, \
                    handshakes of clients that have not connected recently, and of networks and names that have used \
                    more than their share of CPU, are refused too. With `off`, all of them wait.",
            |field, timeouts| field.set(&mut timeouts.handshake_deadline, timeout_or_off),
            |timeouts| or_off(timeouts.handshake_deadline.as_ref(), |deadline| time(*deadline)),
        ),
        Key::new(
            "header",
            "duration",
            Preset::Is("30s"),
            "Time from the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the \
                    end of the preface.",
            |field, timeouts| field.set(&mut timeouts.header, timeout),
            |timeouts| time(timeouts.header),
        ),
        Key::new(
            "request",
            "duration",
            Preset::Means("none"),
            "Time from the end of a request's header to the end of its body; beyond it, the response is \
                    408. Without it, an upload may take as long as data arrives.",
            |field, timeouts| timeouts.request = field.parse(timeout),
            |timeouts| timeouts.request.map(time).into(),
        ),
        Key::new(
            "idle",
            "duration",
            Preset::Is("75s"),
            "Idle time between requests on a connection, between two pieces of a request's body, and while a \
                    client accepts no data of a response; in `tcp` mode, without a byte in either direction, or \
                    while one side accepts no data. A client that returns later needs a new handshake.",
            |field, timeouts| field.set(&mut timeouts.idle, timeout),
            |timeouts| time(timeouts.idle),
        ),
    ],
};

pub(super) const LIMITS: Section<ListenerLimits> = Section {
    path: "listeners[].limits",
    about: "Limits of one listener; connections and handshakes are counted over all threads.",
    keys: &[
        Key::new(
            "connections",
            "count",
            Preset::Is("100000"),
            "Maximum number of open connections. Each costs memory even when idle, and a file descriptor, with a second one while \
                    an upstream serves it. Beyond it, a new connection takes the place of one that waits for its \
                    client: silent, idle for a second, or within a request's header; in `tcp` mode, without data for a \
                    second after its beginning; without data for ten seconds later, also with a WebSocket; the \
                    oldest, of the network (/24, or /56 with IPv6) with most connections. Without such a connection it waits.",
            |field, limits| field.set(&mut limits.socket.connections, at_least_one),
            |limits| limits.socket.connections.into(),
        ),
        Key::new(
            "connections_per_client",
            "count",
            Preset::Means("no limit"),
            "Maximum number of open connections of one client: of an IPv4 address, or of an IPv6 network of 64 bits. \
                    Further ones are closed before their handshake. Browsers open up to six over HTTP/1.1. Behind a proxy, \
                    clients are distinguished only with `proxy_protocol`.",
            |field, limits| limits.socket.connections_per_client = field.parse(count),
            |limits| limits.socket.connections_per_client.map(NonZeroUsize::get).into(),
        ),
        Key::new(
            "handshakes",
            "count",
            Preset::Is("20000"),
            "Maximum number of handshakes in flight. Each holds its buffers and may wait in the engine's \
                    queue, so more of them means more memory and a longer wait under overload, not more handshakes a \
                    second. Beyond it, a new handshake takes the place of the oldest that waits for its client, of \
                    the network with most handshakes; without one, it is refused.",
            |field, limits| field.set(&mut limits.socket.handshakes, at_least_one),
            |limits| limits.socket.handshakes.into(),
        ),
        Key::new(
            "header",
            "size",
            Preset::Is("64KiB"),
            "Maximum size of a request's header with its URL, in any version of HTTP. A larger one receives a \
                    431 response. Each connection may hold this amount of memory while the header arrives.",
            |field, limits| field.set(&mut limits.requests.header, header_limit),
            |limits| limits.shown(|requests| show_size(requests.header).into()),
        ),
        Key::new(
            "headers",
            "count",
            Preset::Is("100"),
            "Maximum number of fields in a request's header. A request with more receives a 431 response. \
                    Cookies count as one field, even if a client of HTTP/2 or HTTP/3 splits them into several.",
            |field, limits| field.set(&mut limits.requests.fields, header_count),
            |limits| limits.shown(|requests| requests.fields.get().into()),
        ),
        Key::new(
            "url",
            "size",
            Preset::Means("the limit of the header"),
            "Maximum length of a request's path and query. A longer one receives a 414 response.",
            |field, limits| limits.requests.url = field.parse(url_limit),
            |limits| limits.shown(|requests| requests.url.map(show_size).into()),
        ),
        Key::new(
            "body",
            "size, or `off`",
            Preset::Is("off"),
            "Maximum size of a request body, on routes that have no `limits` of their own. A request that \
                    declares a larger one receives a 413 response before any of it goes upstream. A body of \
                    undeclared length is cut off at the limit: the response is 413 if none has begun; otherwise the \
                    stream, or with HTTP/1.1 the connection, is reset. All messages that a client sends in a gRPC \
                    stream are one body.",
            |field, limits| {
                if let Some(limit) = field.parse(body_limit) {
                    limits.requests.body = limit;
                }
            },
            |limits| limits.shown(|requests| show_size_or_off(requests.body).into()),
        ),
    ],
};

impl ListenerLimits {
    fn shown(&self, of: impl FnOnce(&RequestLimits) -> Value) -> Value {
        match self.mode {
            Mode::Http => of(&self.requests),
            Mode::Tcp => Value::Null,
        }
    }

    /// Reads the limits of a listener in this mode.
    pub(super) fn read(&mut self, field: &Field<'_>, mode: Mode) {
        self.mode = mode;
        LIMITS.read(field, self);
        if mode == Mode::Tcp {
            for field in ["header", "headers", "url", "body"].iter().filter_map(|key| field.entry(key)) {
                field.error(Problem::new("`mode: tcp` has no requests", "remove this, or use `mode: http`"));
            }
        }
        let header = self.requests.header;
        if self.requests.url.is_some_and(|url| url >= header) {
            let problem = format!("never reached: a whole header is limited to {}", show_size(header));
            field.at("url").error(Problem::new(problem, "write less, or a larger `header`"));
        }
    }
}

/// Reads the maximum number of header fields. A higher limit would allow headers that take too long to process.
fn header_count(text: &str) -> Result<NonZeroUsize, Problem> {
    match count(text)? {
        count if count.get() > 10_000 => {
            Err(Problem::new("no client sends this many headers", "write `10000` or less"))
        }
        count => Ok(count),
    }
}

fn at_least_one(text: &str) -> Result<usize, Problem> {
    count(text).map(usize::from)
}
