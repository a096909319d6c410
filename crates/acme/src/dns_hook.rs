//! The command that adds a TXT record to DNS and removes it.

use crate::AcmeError;
use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::process::Command;

/// DNS propagation may take minutes.
const PATIENCE: Duration = Duration::from_secs(300);
/// Maximum number of bytes of the command's error output that is repeated.
const REPEATED: usize = 500;
/// Maximum length of the line that names the interpreter of a script.
const LONGEST_LINE: u64 = 256;

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

/// Checks that the command can be run; an error names it.
pub(crate) fn check(hook: &Path) -> Result<(), String> {
    let unusable = |problem: String| format!("{}: {problem}", hook.display());
    let metadata = fs::metadata(hook).map_err(|error| unusable(error.to_string()))?;
    if !metadata.is_file() {
        return Err(unusable("not a file".to_owned()));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(unusable("not executable; run `chmod +x` on it".to_owned()));
    }
    match interpreter(hook) {
        Some(program) if !program.exists() => Err(unusable(format!(
            "its interpreter {} does not exist; correct its first line",
            program.display()
        ))),
        _ => Ok(()),
    }
}

/// Returns the interpreter that the first line of a script names.
fn interpreter(hook: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    BufReader::new(File::open(hook).ok()?.take(LONGEST_LINE)).read_until(b'\n', &mut line).ok()?;
    let line = std::str::from_utf8(line.strip_prefix(b"#!")?).ok()?;
    line.split_whitespace().next().map(PathBuf::from)
}

/// Returns the name of the TXT record (RFC 8555 section 8.4).
pub(crate) fn record_name(name: &str) -> String {
    format!("_acme-challenge.{}", name.trim_start_matches("*."))
}
