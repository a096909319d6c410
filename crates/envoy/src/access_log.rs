//! Where finished requests are recorded.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::model::AccessLog;

/// The first log that is a file or standard output, in the message's `access_log`.
pub(crate) fn access_log(message: &Message<'_>) -> Option<Option<AccessLog>> {
    let mut found = None;
    for item in message.list("access_log") {
        let log = one(&item)?;
        found = found.or(log);
    }
    Some(found)
}

fn one(field: &Field<'_>) -> Option<Option<AccessLog>> {
    let message = field.message(&schema::ACCESS_LOG)?;
    let (kind, config) = message.require("typed_config")?.any()?;
    match kind.rsplit('.').next() {
        Some("FileAccessLog") => {
            let path = config.message(&schema::FILE_ACCESS_LOG)?.require("path")?.text()?;
            Some(Some(match path {
                "/dev/stdout" => AccessLog::Stdout,
                _ => AccessLog::File(path.into()),
            }))
        }
        Some("StdoutAccessLog") => Some(Some(AccessLog::Stdout)),
        _ => {
            config.warn(&format!("log {kind}"), format!("ignored: there is no access log {kind}"));
            Some(None)
        }
    }
}
