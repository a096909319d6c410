//! `quadrille field migrate`.

use super::mcrypt;
use base64ct::{Base64, Encoding};
use quadrille_field::{KeyRing, Legacy};
use quadrille_migrate::{Address, Column, Index, Job, Progress, Source, connect, run};
use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// Re-encrypts columns of a table with the active key, in batches of rows, while applications use the table.
///
/// A run can be interrupted at any time, and the next one continues: the envelopes show which rows are done. It ends
/// when a pass over the table finds no more rows to update. Rows that cannot be read are left unchanged and reported,
/// and the command exits with status 2.
///
/// Examples:
///
///   quadrille field migrate --keys fields.keys --database postgresql://app@localhost/app \
///     --table users --column phone                         from older keys to the active one
///
///   quadrille field migrate ... --from legacy --legacy-keys old.keys \
///     --table users --column phone:phone_enc --index phone_enc=phone_index:64 --clear
///
///   quadrille field migrate ... --from mcrypt --mcrypt mcrypt.conf --table users --column phone --dry-run
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Migrate {
    /// The key ring file.
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    /// The database's URL: mysql://user:password@localhost/db, or postgresql://... A password given here is visible
    /// to other users of this machine: prefer the environment variable.
    #[arg(long, value_name = "URL", env = "QUADRILLE_DATABASE", hide_env_values = true)]
    database: Address,
    /// Allow an unencrypted connection to another machine.
    #[arg(long)]
    unencrypted: bool,
    /// The table.
    #[arg(long, value_name = "NAME")]
    table: String,
    /// The column that identifies a row by itself: the primary key, as the application passes it to encrypt().
    #[arg(long, value_name = "NAME", default_value = "id")]
    id: String,
    /// A column, or SOURCE:TARGET to read one column and write envelopes to another. The field name is the target's.
    /// May be repeated.
    #[arg(long, value_name = "NAME", required = true)]
    column: Vec<ColumnFlag>,
    /// Fill a blind index: TARGET=INDEX:BITS. The value is indexed without normalisation. May be repeated.
    #[arg(long, value_name = "INDEX")]
    index: Vec<IndexFlag>,
    /// The format of values that are not envelopes.
    #[arg(long, value_name = "FORM", value_enum, default_value = "envelope")]
    from: Form,
    /// File for --from legacy (mode 0600): two lines, the data key and the vector key in base64.
    #[arg(long, value_name = "FILE", required_if_eq("from", "legacy"))]
    legacy_keys: Option<PathBuf>,
    /// File for --from mcrypt (mode 0600): the application's mcrypt parameters, one setting per line: `cipher:
    /// rijndael-128`, 192 or 256 (the block); `mode: ecb`, cbc, cfb or ncfb; `key: text:...`, hex:... or base64:...;
    /// `vector: front` (default), zero, or one for all fields, written like the key; `encoding: base64` (default),
    /// hex or raw; `padding: zero` (default) or pkcs7; `content: text` (default), which treats values that are not
    /// UTF-8 as unreadable, or binary, which accepts any value.
    #[arg(long, value_name = "FILE", required_if_eq("from", "mcrypt"))]
    mcrypt: Option<PathBuf>,
    /// Read everything and write nothing: print how many rows would be re-encrypted, and which cannot be read.
    #[arg(long)]
    dry_run: bool,
    /// Set a source column to NULL when its envelope is written.
    #[arg(long)]
    clear: bool,
    /// Number of rows per transaction; they are locked during it.
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// Do not print progress on standard error.
    #[arg(long)]
    quiet: bool,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Form {
    /// Unreadable: only envelopes are re-encrypted.
    Envelope,
    /// The older AES-256-CBC form.
    Legacy,
    /// Ciphertext of PHP's mcrypt extension with Rijndael.
    Mcrypt,
    /// Plain text.
    Plain,
}

#[derive(Clone)]
struct ColumnFlag {
    from: String,
    to: String,
}

#[derive(Clone)]
struct IndexFlag {
    target: String,
    index: Index,
}

/// Maximum number of unreadable rows whose ids are printed.
const NAMED: usize = 20;

impl Migrate {
    pub(crate) fn run(self) -> Result<(), String> {
        if !self.database.is_local() && !self.unencrypted {
            return Err("--database is on another machine, and the connection would not be encrypted: run this on the \
                        database's machine, use a tunnel, or give --unencrypted"
                .to_owned());
        }
        let job = self.job()?;
        let mut database = connect(&self.database).map_err(|error| error.to_string())?;
        let mut shown = Shown { table: job.table.clone(), quiet: self.quiet, last: None };
        let report =
            run(&mut *database, &job, &mut |progress| shown.show(progress)).map_err(|e| e.to_string())?;
        let done = if self.dry_run { "rows would be re-encrypted" } else { "rows re-encrypted" };
        println!("{}: {} {done}", job.table, report.updated);
        if report.unreadable.is_empty() {
            return Ok(());
        }
        let ids: Vec<_> = report.unreadable.iter().take(NAMED).map(String::as_str).collect();
        let rest = if report.unreadable.len() > NAMED { ", ..." } else { "" };
        Err(format!(
            "{}: {} rows have values that cannot be read, and are unchanged; {}: {}{rest}",
            job.table,
            report.unreadable.len(),
            job.id,
            ids.join(", ")
        ))
    }

    fn job(&self) -> Result<Job, String> {
        let ring = KeyRing::load(&self.keys).map_err(|error| error.to_string())?;
        let source = match self.from {
            Form::Envelope => Source::Envelopes,
            Form::Plain => Source::Plain,
            Form::Mcrypt => {
                let file = self.mcrypt.as_ref().ok_or("--from mcrypt needs --mcrypt")?;
                let mcrypt = mcrypt::load(file).map_err(|error| format!("{}: {error}", file.display()))?;
                Source::Mcrypt(Box::new(mcrypt))
            }
            Form::Legacy => {
                let file = self.legacy_keys.as_ref().ok_or("--from legacy needs --legacy-keys")?;
                Source::Legacy(Box::new(
                    legacy(file).map_err(|error| format!("{}: {error}", file.display()))?,
                ))
            }
        };
        let dry_run = self.dry_run;
        let mut columns: Vec<Column> = Vec::new();
        for ColumnFlag { from, to } in &self.column {
            columns.push(Column { from: from.clone(), to: to.clone(), index: None });
        }
        for IndexFlag { target, index } in &self.index {
            let column = columns.iter_mut().find(|column| column.to == *target);
            column.ok_or_else(|| format!("--index {target}=...: there is no --column {target}"))?.index =
                Some(index.clone());
        }
        let (table, id) = (self.table.clone(), self.id.clone());
        Ok(Job { ring, table, id, columns, source, batch: self.batch, clear: self.clear, dry_run })
    }
}

/// Reads the keys of the older format: two lines of base64.
fn legacy(file: &Path) -> Result<Legacy, String> {
    let metadata = fs::metadata(file).map_err(|error| error.to_string())?;
    if metadata.mode() & 0o077 != 0 {
        return Err("other users can read the keys; restrict it with chmod 600".to_owned());
    }
    let text = Zeroizing::new(fs::read_to_string(file).map_err(|error| error.to_string())?);
    let mut keys = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut key = || {
        let line = keys.next().ok_or("expected two lines: the data key and the vector key in base64")?;
        let mut key = Zeroizing::new([0; 32]);
        match Base64::decode(line.trim(), &mut *key).map(<[u8]>::len) {
            Ok(32) => Ok(key),
            _ => Err("a key is 32 bytes in base64"),
        }
    };
    let (data, vector) = (key()?, key()?);
    Legacy::new(&*data, &*vector).map_err(|error| error.to_string())
}

/// Progress on standard error, once a second.
struct Shown {
    table: String,
    quiet: bool,
    last: Option<Instant>,
}

impl Shown {
    fn show(&mut self, progress: Progress) {
        let is_due = self.last.is_none_or(|last| last.elapsed() >= Duration::from_secs(1));
        if self.quiet || !is_due {
            return;
        }
        self.last = Some(Instant::now());
        eprintln!("{}: {} of {} rows", self.table, progress.done, progress.total);
    }
}

impl FromStr for ColumnFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text.split_once(':').unwrap_or((text, text));
        if from.is_empty() || to.is_empty() {
            return Err("expected NAME or SOURCE:TARGET".to_owned());
        }
        Ok(Self { from: from.to_owned(), to: to.to_owned() })
    }
}

impl FromStr for IndexFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('=').and_then(|(target, rest)| {
            let (column, bits) = rest.rsplit_once(':').unwrap_or((rest, "64"));
            let index = Index { column: column.to_owned(), bits: bits.parse().ok()? };
            (!target.is_empty() && !column.is_empty()).then(|| Self { target: target.to_owned(), index })
        });
        parsed.ok_or_else(|| "expected TARGET=INDEX:BITS".to_owned())
    }
}
