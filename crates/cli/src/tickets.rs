//! `quadrille tickets`.

use clap::{Args, Subcommand};
use quadrille_config::values;
use quadrille_resumption::{
    Fleet, FleetSecret, Redis, RedisAddress, RedisOptions, Ring, Schedule, TicketKey, UnixTime,
};
use quadrille_unix_time::since_epoch;
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};
use zeroize::Zeroizing;

/// Generate, show and rotate session ticket keys.
#[derive(Args)]
pub(crate) struct Tickets {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Write 80 random bytes to a file with mode 0600: a ticket key (in nginx's format), or a fleet secret.
    Generate {
        /// Must not exist yet.
        file: PathBuf,
    },
    /// Show the names and times of a fleet's or files' ticket keys, never the keys themselves.
    Show(Keys),
    /// Switch to a new ticket key.
    ///
    /// For a fleet: a new key is published, and encrypts once every gateway has it, after at most a minute and a
    /// half. For files: the last key is discarded, each file receives the key of the file before it, and the first a
    /// new key; gateways that use the files reload them.
    Rotate(Keys),
}

#[derive(Args)]
struct Keys {
    /// Key files, in the order of --session-tickets.
    #[arg(required_unless_present = "redis", conflicts_with = "redis")]
    files: Vec<PathBuf>,
    /// The fleet's Redis, as in --session-cache.
    #[arg(long, value_name = "ADDRESS", requires = "fleet_secret")]
    redis: Option<RedisAddress>,
    /// The fleet's secret.
    #[arg(long, value_name = "FILE", requires = "redis")]
    fleet_secret: Option<PathBuf>,
    /// File with the password of Redis.
    #[arg(long, value_name = "FILE", requires = "redis")]
    redis_password: Option<PathBuf>,
    /// CA bundle (PEM) for rediss:// [default: the system's].
    #[arg(long, value_name = "FILE", requires = "redis")]
    redis_ca: Option<PathBuf>,
    /// The gateways' --ticket-rotation.
    #[arg(long, value_name = "TIME", value_parser = values::rotation, default_value = "12h", requires = "redis")]
    ticket_rotation: Duration,
}

impl Tickets {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let outcome = match self.command {
            Command::Generate { file } => generate(&file),
            Command::Show(keys) => show(&keys),
            Command::Rotate(keys) => rotate(&keys),
        };
        outcome.map_err(|problem| vec![problem])
    }
}

fn generate(file: &Path) -> Result<(), String> {
    let key = TicketKey::random();
    create(file, &key.to_file_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            format!("{} already exists; rotate it, or remove it first", file.display())
        }
        _ => format!("cannot write {}: {error}", file.display()),
    })?;
    println!("{}: 80 random bytes (as a ticket key: {key})", file.display());
    Ok(())
}

fn show(keys: &Keys) -> Result<(), String> {
    let Some(fleet) = keys.fleet()? else {
        for (index, key) in keys.read()?.iter().enumerate() {
            let use_ = if index == 0 { "encrypts, decrypts" } else { "decrypts" };
            println!("{key}  {use_}  {}", keys.files[index].display());
        }
        return Ok(());
    };
    let ring = block_on(fleet.published())?.map_err(|error| keys.blame(&error))?;
    print(&ring, since_epoch());
    Ok(())
}

fn rotate(keys: &Keys) -> Result<(), String> {
    let Some(fleet) = keys.fleet()? else { return shift(&keys.files, &keys.read()?) };
    let schedule = Schedule { rotation: keys.ticket_rotation };
    let ring = block_on(fleet.rotate(since_epoch(), schedule))?.map_err(|error| keys.blame(&error))?;
    print(&ring, since_epoch());
    Ok(())
}

impl Keys {
    fn fleet(&self) -> Result<Option<Fleet>, String> {
        let (Some(address), Some(secret)) = (&self.redis, &self.fleet_secret) else { return Ok(None) };
        let secret =
            FleetSecret::new(&bytes(secret)?).map_err(|error| format!("{} {error}", secret.display()))?;
        let password = self.redis_password.as_ref().map(|file| {
            let text = String::from_utf8(bytes(file)?.trim_ascii().to_vec());
            text.map(Zeroizing::new).map_err(|_| format!("{} is not UTF-8 text", file.display()))
        });
        let options = RedisOptions { password: password.transpose()?, ca: self.redis_ca.clone() };
        Ok(Some(Fleet::new(Redis::new(address.clone(), options), secret)))
    }

    fn read(&self) -> Result<Vec<TicketKey>, String> {
        let key = |file: &PathBuf| {
            TicketKey::from_file_bytes(&bytes(file)?).map_err(|error| format!("{} {error}", file.display()))
        };
        self.files.iter().map(key).collect()
    }

    fn blame(&self, error: &dyn std::fmt::Display) -> String {
        self.redis.as_ref().map_or_else(|| error.to_string(), |redis| format!("{redis} {error}"))
    }
}

fn bytes(file: &Path) -> Result<Zeroizing<Vec<u8>>, String> {
    fs::read(file).map(Zeroizing::new).map_err(|error| format!("cannot read {}: {error}", file.display()))
}

/// Moves each key to the next file, last file first, so that every key in use is in some file at any time.
fn shift(files: &[PathBuf], keys: &[TicketKey]) -> Result<(), String> {
    let fresh = TicketKey::random();
    let newest_first = std::iter::once(&fresh).chain(keys);
    let moves: Vec<_> = files.iter().zip(newest_first).collect();
    for (file, key) in moves.into_iter().rev() {
        replace(file, &key.to_file_bytes())
            .map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    if let [file] = files {
        println!("{}: {fresh}; tickets of the previous key are no longer accepted", file.display());
    } else {
        println!("{}: {fresh}", files[0].display());
    }
    Ok(())
}

fn create(file: &Path, content: &[u8]) -> io::Result<()> {
    let mut created = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    created.write_all(content)?;
    created.sync_all()
}

/// Replaces the file atomically: a gateway that reads it meanwhile sees the old content or the new content.
fn replace(file: &Path, content: &[u8]) -> io::Result<()> {
    let new = file.with_extension(format!("new-{}", std::process::id()));
    create(&new, content)?;
    fs::rename(&new, file).inspect_err(|_| drop(fs::remove_file(&new)))
}

fn print(ring: &Ring, now: UnixTime) {
    let current = ring.encrypting(now);
    for scheduled in ring.keys() {
        let role = match scheduled.from.cmp(&current.from) {
            std::cmp::Ordering::Less => "previous",
            std::cmp::Ordering::Equal => "current ",
            std::cmp::Ordering::Greater => "next    ",
        };
        let seconds = |time: Duration| values::show_duration(Duration::from_secs(time.as_secs()));
        let when = if scheduled.from > now {
            format!("in {}", seconds(scheduled.from - now))
        } else {
            format!("since {}", seconds(now - scheduled.from))
        };
        println!("{}  {role}  encrypts {when}", scheduled.key);
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map(|runtime| runtime.block_on(future)).map_err(|error| format!("cannot start: {error}"))
}
