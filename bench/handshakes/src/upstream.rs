//! The plain HTTP upstream of servers that forward requests: nginx, on the client's core, not counted.

use std::{
    fmt,
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

/// A response body of the upstream, as a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Request path.
    pub path: &'static str,
    /// Length in bytes.
    pub bytes: u64,
}

impl Body {
    /// Size of a typical API response, which fits into one TCP segment.
    pub const SMALL: Self = Self { path: "/files/small", bytes: 1_400 };
    /// Size of one TLS record.
    pub const MEDIUM: Self = Self { path: "/files/medium", bytes: 16 << 10 };
    /// A size at which only the cost of bytes matters.
    pub const LARGE: Self = Self { path: "/files/large", bytes: 64 << 20 };

    /// All bodies.
    pub const ALL: [Self; 3] = [Self::SMALL, Self::MEDIUM, Self::LARGE];
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bytes {
            bytes if bytes >= 1 << 20 => write!(f, "{} MiB", bytes >> 20),
            bytes if bytes.is_multiple_of(1 << 10) => write!(f, "{} KiB", bytes >> 10),
            bytes => write!(f, "{bytes} B"),
        }
    }
}

const START_TIME: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(20);

/// A running upstream, terminated on drop.
#[derive(Debug)]
pub struct Upstream {
    /// Address that it listens on.
    pub address: SocketAddr,
    process: Companion,
}

impl Upstream {
    /// Starts it on `core`, with capacity for `connections`: serves `ok` at `/`, and each [`Body`] at its path.
    pub fn start(nginx: &Path, core: usize, connections: usize, directory: &Path) -> Result<Self> {
        let files = directory.join("files");
        fs::create_dir_all(&files)?;
        for body in Body::ALL {
            write_body(&directory.join(body.path.trim_start_matches('/')), body.bytes)?;
        }
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

    /// Returns its first process.
    pub fn pid(&self) -> Pid {
        self.process.pid()
    }

    /// Returns the address of the upstream, if `rival`'s job needs one.
    pub fn for_job(upstream: Option<&Self>, rival: Rival) -> Option<SocketAddr> {
        match rival.job() {
            Job::Answer => None,
            Job::PassOn => upstream.map(|upstream| upstream.address),
        }
    }
}

/// Writes incompressible bytes, identical in every run.
fn write_body(path: &Path, bytes: u64) -> Result<()> {
    let mut file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut piece = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        for word in piece.as_chunks_mut::<8>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        let length = left.min(piece.len() as u64);
        file.write_all(&piece[..length as usize])?;
        left -= length;
    }
    Ok(())
}

/// Creates the directory for nginx's workers, which run as another user when it is started by root.
pub fn make_folder_for_workers(directory: &Path) -> Result<()> {
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
    bail!("the upstream does not respond")
}

fn answers(address: SocketAddr) -> Result<bool> {
    let mut stream = TcpStream::connect_timeout(&address, PAUSE * 10)?;
    stream.set_read_timeout(Some(PAUSE * 10))?;
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response.ends_with("ok"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_their_length() {
        let directory = tempfile::tempdir().unwrap();
        for (bytes, name) in [(1_400, "1400 B"), (16 << 10, "16 KiB"), ((1 << 20) + 8, "1 MiB")] {
            let path = directory.path().join("body");
            write_body(&path, bytes).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().len(), bytes);
            assert_eq!(Body { path: "/body", bytes }.to_string(), name);
        }
    }
}
