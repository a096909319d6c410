//! The plain HTTP server behind those that pass requests on: nginx, on the client's core, not counted.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::unistd::Pid;

use crate::{
    rival::{Job, Rival, template},
    server::{Companion, free_address},
};

/// Path of the large body.
pub const BULK_PATH: &str = "/bulk";
/// Its length in bytes.
pub const BULK_BYTES: u64 = 64 << 20;

const START_TIME: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A running upstream; dropping it ends it.
#[derive(Debug)]
pub struct Upstream {
    /// Where it listens.
    pub address: SocketAddr,
    process: Companion,
}

impl Upstream {
    /// Starts it on `core`, with room for `connections` at once: `ok` at `/`, and [`BULK_BYTES`] at [`BULK_PATH`].
    pub fn start(nginx: &Path, core: usize, connections: usize, directory: &Path) -> Result<Self> {
        let files = directory.join("files");
        fs::create_dir_all(&files)?;
        write_bulk(&files.join(BULK_PATH.trim_start_matches('/')))?;
        make_folder_for_workers(directory)?;
        make_folder_for_workers(&files)?;
        let address = free_address()?;
        let configuration = template::upstream(address, connections, directory)?;
        let arguments =
            ["-p".into(), directory.into(), "-e".into(), "stderr".into(), "-c".into(), configuration];
        let process = Companion::start(core, nginx, &arguments, &directory.join("upstream.log"))?;
        wait_until_ready(address)?;
        Ok(Self { address, process })
    }

    /// Its first process.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// The same upstream, if `rival` can do nothing without one.
    pub fn for_job(upstream: Option<&Self>, rival: Rival) -> Option<SocketAddr> {
        match rival.job() {
            Job::Answer => None,
            Job::PassOn => upstream.map(|upstream| upstream.address),
        }
    }
}

/// Bytes that no compression helps with, the same ones in every run.
fn write_bulk(path: &Path) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut piece = vec![0; 1 << 20];
    for _ in 0..BULK_BYTES >> 20 {
        for word in piece.as_chunks_mut::<8>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        file.write_all(&piece)?;
    }
    Ok(())
}

/// nginx's worker is another user when it is started by root.
pub(crate) fn make_folder_for_workers(directory: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o711))?;
    Ok(())
}

fn wait_until_ready(address: SocketAddr) -> Result<()> {
    let deadline = Instant::now() + START_TIME;
    while Instant::now() < deadline {
        if answers(address).is_ok_and(|ok| ok) {
            return Ok(());
        }
        thread::sleep(PAUSE);
    }
    bail!("the upstream does not answer")
}

fn answers(address: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, PAUSE * 10)?;
    stream.set_read_timeout(Some(PAUSE * 10))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response.ends_with("ok"))
}
