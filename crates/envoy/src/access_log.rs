//! Access logs.

use crate::{
    reader::{Field, Message, ReadMessage},
    schema,
};
use quadrille_config::{Problem, model::AccessLog};
use std::path::Path;

/// Reads the first log to a file or standard output in the message's `access_log`.
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
            let path = config.message(&schema::FILE_ACCESS_LOG)?.require("path")?;
            match path.text()? {
                "/dev/stdout" => Some(Some(AccessLog::Stdout)),
                file if file == "/dev/stderr" || path.may_name(Path::new(file)) => {
                    Some(Some(AccessLog::File(file.into())))
                }
                _ => path.fail(Problem::new(
                    "refused: a control plane names a local file to write to",
                    "write to `/dev/stdout`, or list the file's directory: --control-plane-files DIRECTORY",
                )),
            }
        }
        Some("StdoutAccessLog") => Some(Some(AccessLog::Stdout)),
        _ => {
            config.warn(&format!("log {kind}"), format!("ignored: access log {kind} is not supported"));
            Some(None)
        }
    }
}
