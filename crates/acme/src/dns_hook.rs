//! The command that adds a TXT record to DNS and removes it.

use crate::AcmeError;
use std::{path::Path, process::Stdio, time::Duration};
use tokio::process::Command;

/// DNS propagation may take minutes.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum number of bytes of the command's error output that is repeated.
const REPEATED: usize = 500;

/// Runs `HOOK present NAME VALUE` or `HOOK cleanup NAME VALUE`, and waits until it exits.
pub(crate) async fn run(hook: &Path, action: &str, name: &str, value: &str) -> Result<(), AcmeError> {
    let failed = |problem: String| AcmeError::Hook(format!("{} {action} {name}: {problem}", hook.display()));
    let mut command = Command::new(hook);
    command.args([action, name, value]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let running = command.kill_on_drop(true).output();
    let ended = tokio::time::timeout(PATIENCE, running)
        .await
        .map_err(|_| failed("not finished within 5 minutes".to_owned()))?;
    let output = ended.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = &output.stderr[..output.stderr.len().min(REPEATED)];
    Err(failed(format!("{}: {}", output.status, String::from_utf8_lossy(said).trim())))
}

/// Returns the name of the TXT record (RFC 8555 section 8.4).
pub(crate) fn record_name(name: &str) -> String {
    format!("_acme-challenge.{}", name.trim_start_matches("*."))
}
