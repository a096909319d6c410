//! When slow clients are dropped, and how much a listener takes on.

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

/// How much a listener takes on: as a socket, and as a server of HTTP.
#[derive(Default)]
pub(super) struct ListenerLimits {
    pub(super) socket: Limits,
    pub(super) requests: RequestLimits,
    /// No requests are seen in it.
    pub(super) mode: Mode,
}

pub(super) const TIMEOUTS: Section<Timeouts> = Section {
    path: "listeners[].timeouts",
    about: "When slow clients are disconnected. Longer times admit slower clients, and let idle ones hold memory for \
            longer.",
    keys: &[
        Key {
            name: "handshake",
            value: "duration",
            preset: Preset::Is("10s"),
            about: "From accepting a connection to the end of its TLS handshake, a PROXY header included.",
            needs_restart: false,
            read: |field, timeouts| field.set(&mut timeouts.handshake, timeout),
            show: |timeouts| time(timeouts.handshake),
        },
        Key {
            name: "handshake_deadline",
            value: "duration, or `off`",
            preset: Preset::Is("3s"),
            about: "After this time, counted from accepting a connection, its client is assumed to have left. A \
                    handshake that cannot finish by then is refused at its ClientHello, before it has cost anything. \
                    Under overload, so are those of clients that have not been seen lately, and of networks and names \
                    that have used more than their share of CPU. `off` lets all of them wait.",
            needs_restart: false,
            read: |field, timeouts| field.set(&mut timeouts.handshake_deadline, timeout_or_off),
            show: |timeouts| or_off(timeouts.handshake_deadline.as_ref(), |deadline| time(*deadline)),
        },
        Key {
            name: "header",
            value: "duration",
            preset: Preset::Is("30s"),
            about: "From the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the \
                    end of the preface.",
            needs_restart: false,
            read: |field, timeouts| field.set(&mut timeouts.header, timeout),
            show: |timeouts| time(timeouts.header),
        },
        Key {
            name: "request",
            value: "duration",
            preset: Preset::Means("none"),
            about: "From the end of a request's header to the end of its body; a later one is answered with 408. \
                    Without it, an upload may take as long as data arrives.",
            needs_restart: false,
            read: |field, timeouts| timeouts.request = field.parse(timeout),
            show: |timeouts| timeouts.request.map(time).into(),
        },
        Key {
            name: "idle",
            value: "duration",
            preset: Preset::Is("75s"),
            about: "Between requests on a connection; between two pieces of a request's body; while a client accepts \
                    nothing of a response; in `tcp` mode, without a byte in either direction, or while one side \
                    accepts nothing. A client that returns later pays for a new handshake.",
            needs_restart: false,
            read: |field, timeouts| field.set(&mut timeouts.idle, timeout),
            show: |timeouts| time(timeouts.idle),
        },
    ],
};

pub(super) const LIMITS: Section<ListenerLimits> = Section {
    path: "listeners[].limits",
    about: "How much one listener accepts; connections and handshakes are those of all threads together.",
    keys: &[
        Key {
            name: "connections",
            value: "count",
            preset: Preset::Is("100000"),
            about: "Open connections. Each costs memory even when idle, and a file descriptor, with a second one while \
                    an upstream serves it.",
            needs_restart: false,
            read: |field, limits| field.set(&mut limits.socket.connections, at_least_one),
            show: |limits| limits.socket.connections.into(),
        },
        Key {
            name: "handshakes",
            value: "count",
            preset: Preset::Is("20000"),
            about: "Handshakes in flight. Each holds its buffers and may wait in the engine's queue, so more of them \
                    means more memory and a longer wait under overload, not more handshakes a second.",
            needs_restart: false,
            read: |field, limits| field.set(&mut limits.socket.handshakes, at_least_one),
            show: |limits| limits.socket.handshakes.into(),
        },
        Key {
            name: "header",
            value: "size",
            preset: Preset::Is("64KiB"),
            about: "The size of a request's header with its URL, in any version of HTTP. A larger one is answered with \
                    431. Each connection may hold this much memory while the header arrives.",
            needs_restart: false,
            read: |field, limits| field.set(&mut limits.requests.header, header_limit),
            show: |limits| limits.shown(|requests| show_size(requests.header).into()),
        },
        Key {
            name: "headers",
            value: "count",
            preset: Preset::Is("100"),
            about: "The number of fields in a request's header. More are answered with 431. Cookies count as one \
                    field, however many fields a client of HTTP/2 or HTTP/3 splits them into.",
            needs_restart: false,
            read: |field, limits| field.set(&mut limits.requests.fields, header_count),
            show: |limits| limits.shown(|requests| requests.fields.get().into()),
        },
        Key {
            name: "url",
            value: "size",
            preset: Preset::Means("as much as a header"),
            about: "The length of a request's path and query. A longer one is answered with 414.",
            needs_restart: false,
            read: |field, limits| limits.requests.url = field.parse(url_limit),
            show: |limits| limits.shown(|requests| requests.url.map(show_size).into()),
        },
        Key {
            name: "body",
            value: "size, or `off`",
            preset: Preset::Is("off"),
            about: "The largest request body, on routes that have no `limits` of their own. A request that declares a \
                    larger one is answered with 413 before any of it goes upstream. A body of undeclared length is cut \
                    off where it becomes too large: it is answered with 413 if no response has begun; otherwise its \
                    stream, or with HTTP/1.1 its connection, is reset. All that a client sends in a gRPC stream is one \
                    body.",
            needs_restart: false,
            read: |field, limits| {
                if let Some(limit) = field.parse(body_limit) {
                    limits.requests.body = limit;
                }
            },
            show: |limits| limits.shown(|requests| show_size_or_off(requests.body).into()),
        },
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
                field.error(Problem::new("`mode: tcp` sees no requests", "remove this, or use `mode: http`"));
            }
        }
        let header = self.requests.header;
        if self.requests.url.is_some_and(|url| url >= header) {
            let problem = format!("never reached: a whole header may have {}", show_size(header));
            field.at("url").error(Problem::new(problem, "write less, or a larger `header`"));
        }
    }
}

/// More would make of a header what nobody could read in time.
fn header_count(text: &str) -> Result<NonZeroUsize, Problem> {
    match count(text)? {
        count if count.get() > 10_000 => {
            Err(Problem::new("no client has so many headers", "write `10000` or less"))
        }
        count => Ok(count),
    }
}

fn at_least_one(text: &str) -> Result<usize, Problem> {
    count(text).map(usize::from)
}
