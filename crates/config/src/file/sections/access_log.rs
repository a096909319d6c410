//! The access log: destination, format, rotation.

use crate::{
    Field, Problem,
    enums::{Word, switch, word},
    file::schema::{Key, Preset, Section},
    fraction, log_format,
    model::{
        AccessLog, Gateway, LogField, LogFields, LogFormat, LogLayout, RotatedFile, Syslog, SyslogServer,
    },
    quote, size, unix_socket, values,
};
use serde_json::{Value, json};
use std::{path::PathBuf, sync::Arc};

/// Values read for the access log.
#[derive(Default)]
pub(in crate::file) struct AccessLogDraft {
    to: AccessLog,
    format: Option<LogFormat>,
    max_size: Option<u64>,
    keep: Option<u32>,
    syslog: Option<Syslog>,
}

pub(in crate::file) const ACCESS_LOG: Section<AccessLogDraft, Gateway> = Section {
    path: "access_log",
    about: "The access log. `off`, `stdout` or a path alone is short for a mapping with it as `to`.",
    keys: &[
        Key::new(
            "to",
            "`off`, `stdout` or a path",
            Preset::Is("off"),
            "Destination: standard output or a file.",
            |field, draft| draft.to = destination(field),
            |gateway| show_destination(&gateway.access_log),
        ),
        Key::new(
            "format",
            "`combined`, `common`, a text, or a mapping",
            Preset::Means("the fields of `access_log_fields`, as text or JSON by `--log-format`"),
            "Format of lines: `combined` or `common`, a text with variables, or a mapping of names to such texts, which \
                    makes each line a JSON object. Variables: `$remote_addr`, `$remote_port`, `$remote_user`, \
                    `$time_local`, `$time_iso8601` (both in UTC), `$msec`, `$request`, `$request_method`, `$request_uri`, \
                    `$uri`, `$args`, `$scheme`, `$host`, `$server_protocol`, `$server_addr`, `$server_port`, `$status`, \
                    `$body_bytes_sent`, `$request_time`, `$upstream_name`, `$upstream_addr`, `$upstream_header_time`, \
                    `$upstream_response_time` (times in seconds), `$request_id`, `$error`, `$ssl_protocol`, \
                    `$ssl_cipher`, `$ssl_server_name`, `$ssl_session_reused`, `$handshake_time`, `$key_wait_time`, \
                    `$key_time`, `$key_batch`, `$pid`, and `$http_NAME` for a header of the request; for TCP also \
                    `$bytes_sent`, `$bytes_received` and `$session_time`. A variable without a value is `-`, and null \
                    in JSON. In values, `\"`, `\\` and bytes that are not printable ASCII are written as `\\xXX`. \
                    `$request`, `$request_uri`, `$args` and headers may contain passwords and tokens.",
            |field, draft| draft.format = format(field),
            |gateway| show_format(gateway.access_log_format.as_deref()),
        ),
        Key::new(
            "max_size",
            "size, at least 4KiB",
            Preset::Means("no limit"),
            "Size of the file at which a new one begins. The full one is renamed to a name with the suffix `.1`, and \
                    the one that had this name to `.2`. Do not use it together with logrotate.",
            |field, draft| draft.max_size = field.parse(max_size),
            |gateway| rotated(gateway).map(|file| show_size(file.max_size)).into(),
        ),
        Key::new(
            "keep",
            "count, from 1 to 1000",
            Preset::Is("5"),
            "Number of former files that are kept; older ones are deleted. With `max_size` only.",
            |field, draft| draft.keep = field.parse(keep),
            |gateway| rotated(gateway).map(|file| file.keep).into(),
        ),
        Key::new(
            "syslog",
            "address, path or mapping",
            Preset::Means("none"),
            "Syslog server that receives a message for each line (RFC 5424), too. Its address alone is short for a \
                    mapping with it. A message that the server does not accept at once is lost.",
            |field, draft| draft.syslog = syslog(field),
            |gateway| gateway.access_log_syslog.as_ref().map_or(Value::Null, |syslog| SYSLOG.show(syslog)),
        ),
    ],
};

pub(in crate::file) const SYSLOG: Section<Option<Syslog>, Syslog> = Section {
    path: "access_log.syslog",
    about: "A syslog server, and the properties of its messages. Their severity is informational.",
    keys: &[
        Key::new(
            "server",
            "IP address and port, or path",
            Preset::Required,
            "The server: `127.0.0.1:514` over UDP, or the path of a Unix socket for datagrams, such as `/dev/log`.",
            |field, syslog| *syslog = at_server(field),
            |syslog| match &syslog.server {
                SyslogServer::Udp(address) => address.to_string().into(),
                SyslogServer::Unix(path) => path.display().to_string().into(),
            },
        ),
        Key::new(
            "facility",
            "name of a facility",
            Preset::Is("local0"),
            "Facility of messages: `user`, `daemon`, `local0` to `local7` and the others of RFC 5424.",
            |field, syslog| {
                if let Some(syslog) = syslog {
                    field.set(&mut syslog.facility, facility);
                }
            },
            |syslog| FACILITIES[usize::from(syslog.facility)].into(),
        ),
        Key::new(
            "tag",
            "text, at most 48 characters",
            Preset::Is("quadrille"),
            "Application name of messages.",
            |field, syslog| {
                if let Some(syslog) = syslog {
                    field.set(&mut syslog.tag, tag);
                }
            },
            |syslog| syslog.tag.as_str().into(),
        ),
    ],
};

/// Reads the access log into the model.
pub(super) fn access_log(field: &Field<'_>, gateway: &mut Gateway) {
    if field.is_scalar() {
        gateway.access_log = destination(field);
        return;
    }
    let mut draft = AccessLogDraft::default();
    if ACCESS_LOG.read(field, &mut draft).is_none() {
        return;
    }
    if !matches!(draft.to, AccessLog::File(_)) {
        for key in ["max_size", "keep"].iter().filter_map(|key| field.entry(key)) {
            key.error(Problem::new(
                "only files are rotated",
                "remove it, or write the path of a file as `to`",
            ));
        }
    } else if let (Some(keep), None) = (field.entry("keep"), field.entry("max_size")) {
        keep.error(Problem::new("files are not rotated without `max_size`", "add `max_size`, or remove it"));
    }
    if field.entry("to").is_none() && field.entry("syslog").is_none() {
        field.error(Problem::new("no destination", "add `to: stdout`, `to: PATH` or `syslog`"));
    }
    gateway.access_log = match (draft.to, draft.max_size) {
        (AccessLog::File(path), Some(max_size)) => {
            AccessLog::RotatedFile(RotatedFile { path, max_size, keep: draft.keep.unwrap_or(KEEP) })
        }
        (to, _) => to,
    };
    gateway.access_log_syslog = draft.syslog;
    gateway.access_log_format = draft.format.map(Arc::new);
}

/// Shows the access log as it would be written.
pub(super) fn show(gateway: &Gateway) -> Value {
    let is_short = gateway.access_log_format.is_none()
        && gateway.access_log_syslog.is_none()
        && matches!(gateway.access_log, AccessLog::Off | AccessLog::Stdout | AccessLog::File(_));
    if is_short { show_destination(&gateway.access_log) } else { ACCESS_LOG.show(gateway) }
}

/// Reads the fields of lines without a format.
pub(super) fn fields(field: &Field<'_>, gateway: &Gateway) -> LogFields {
    if gateway.access_log_format.is_some() {
        let remedy = "remove it, or remove `format` of `access_log`";
        field.warn("unused fields", Problem::new("no effect on lines with a `format`", remedy));
    }
    field.items().iter().fold(LogFields::NONE, |fields, item| match item.parse(log_fields) {
        Some(more) => fields.and(more),
        None => fields,
    })
}

/// Shows the fields of lines without a format.
pub(super) fn show_fields(gateway: &Gateway) -> Value {
    let fields = gateway.access_log_fields;
    let shown = LogField::WORDS.iter().filter(|(_, field)| fields.has(*field));
    shown.map(|(name, _)| *name).collect()
}

/// Reads whether requests of a route are logged: `on`, `off`, or a percentage of them.
pub(super) fn share(text: &str) -> Result<Option<u32>, Problem> {
    match switch(text) {
        Ok(on) => Ok(if on { None } else { Some(0) }),
        Err(_) => fraction::percentage(text.trim_end_matches('%')).map(Some).map_err(|_| {
            Problem::new(
                format!("{} is not a share of requests", quote(text)),
                "write `on`, `off` or a percentage such as `10%`",
            )
        }),
    }
}

/// Shows the share of a route's requests that is logged; null for all.
pub(super) fn show_share(parts: Option<u32>) -> Value {
    match parts {
        None => Value::Null,
        Some(0) => "off".into(),
        Some(parts) => format!("{}%", fraction::show(parts)).into(),
    }
}

fn destination(field: &Field<'_>) -> AccessLog {
    match field.parse(values::access_log) {
        Some(AccessLog::File(_)) => field.file().map_or(AccessLog::Off, AccessLog::File),
        other => other.unwrap_or_default(),
    }
}

fn syslog(field: &Field<'_>) -> Option<Syslog> {
    if field.is_scalar() {
        return at_server(field);
    }
    let mut syslog = None;
    SYSLOG.read(field, &mut syslog)?;
    syslog
}

fn at_server(field: &Field<'_>) -> Option<Syslog> {
    Some(Syslog { server: field.parse(server)?, facility: LOCAL0, tag: TAG.to_owned() })
}

fn server(text: &str) -> Result<SyslogServer, Problem> {
    if text.starts_with('/') {
        let path = PathBuf::from(text);
        unix_socket::file(&path)?;
        return Ok(SyslogServer::Unix(path));
    }
    text.parse().map(SyslogServer::Udp).map_err(|_| {
        let remedy = "write an IP address and a port, such as `127.0.0.1:514`, or a path, such as `/dev/log`";
        Problem::new(format!("{} is not the address of a syslog server", quote(text)), remedy)
    })
}

fn show_destination(access_log: &AccessLog) -> Value {
    match access_log {
        AccessLog::Off => "off".into(),
        AccessLog::Stdout => "stdout".into(),
        AccessLog::File(path) | AccessLog::RotatedFile(RotatedFile { path, .. }) => {
            path.display().to_string().into()
        }
    }
}

fn format(field: &Field<'_>) -> Option<LogFormat> {
    if !field.is_mapping() {
        return field.parse(log_format::text);
    }
    let (mut members, mut headers) = (Vec::new(), Vec::new());
    for (name, value) in field.entries() {
        if let Some(template) = value.parse(|text| log_format::template(text, &mut headers)) {
            members.push((name.to_owned(), template));
        }
    }
    if members.is_empty() {
        return field.fail(Problem::new("the mapping is empty", "write members such as `status: $status`"));
    }
    Some(LogFormat { layout: LogLayout::Json(members), headers })
}

fn show_format(format: Option<&LogFormat>) -> Value {
    match format.map(|format| &format.layout) {
        None => Value::Null,
        Some(LogLayout::Text(template)) => template.text.as_str().into(),
        Some(LogLayout::Json(members)) => {
            members.iter().map(|(name, template)| (name.clone(), json!(template.text))).collect()
        }
    }
}

fn rotated(gateway: &Gateway) -> Option<&RotatedFile> {
    match &gateway.access_log {
        AccessLog::RotatedFile(file) => Some(file),
        _ => None,
    }
}

fn max_size(text: &str) -> Result<u64, Problem> {
    match size::size(text)? {
        size if size < 4 << 10 => {
            Err(Problem::new("a new file would begin all the time", "write `4KiB` or more"))
        }
        size => Ok(size as u64),
    }
}

fn show_size(size: u64) -> String {
    usize::try_from(size).map_or_else(|_| size.to_string(), size::show_size)
}

fn keep(text: &str) -> Result<u32, Problem> {
    let count = text.parse().ok().filter(|count| (1..=1000).contains(count));
    count.ok_or_else(|| Problem::new(format!("{} is not a number of files", quote(text)), "write 1 to 1000"))
}

fn facility(text: &str) -> Result<u8, Problem> {
    let known = FACILITIES.iter().position(|name| *name == text).and_then(|index| u8::try_from(index).ok());
    known.ok_or_else(|| {
        let remedy = format!("write one of {}", FACILITIES.join(", "));
        Problem::new(format!("{} is not a facility of syslog", quote(text)), remedy)
    })
}

fn tag(text: &str) -> Result<String, Problem> {
    let fits = (1..=48).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    match fits {
        true => Ok(text.to_owned()),
        false => Err(Problem::new(
            format!("{} is not an application name (RFC 5424)", quote(text)),
            "write 1 to 48 printable ASCII characters without spaces",
        )),
    }
}

/// Reads the name of a field, or of a group of fields.
fn log_fields(text: &str) -> Result<LogFields, Problem> {
    match text {
        DEFAULT_FIELDS => Ok(LogFields::default()),
        name => Ok(LogFields::NONE.with(word(name)?)),
    }
}

const DEFAULT_FIELDS: &str = "default";

/// Default of `keep`.
const KEEP: u32 = 5;

/// Default of `facility`.
const LOCAL0: u8 = 16;

/// Default of `tag`.
const TAG: &str = "quadrille";

/// Facilities by their numbers (RFC 5424 section 6.2.1).
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "authpriv", "ftp",
    "ntp", "audit", "alert", "clock", "local0", "local1", "local2", "local3", "local4", "local5", "local6",
    "local7",
];
