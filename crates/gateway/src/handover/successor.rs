//! Successor process.

use super::{Sockets, description::Description};
use rustix::io::FdFlags;
use std::{
    env,
    ffi::OsString,
    io,
    os::{
        fd::{AsRawFd, BorrowedFd},
        unix::net,
    },
    process,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

/// Environment variable with the descriptor of the connection to the predecessor, and the predecessor's process id.
pub(super) const PREDECESSOR: &str = "QUADRILLE_PREDECESSOR";

/// Message of the successor when it is ready.
pub(super) const READY: &[u8] = b"ready\n";

/// Maximum size in bytes of the description of the sockets.
pub(super) const MOST_DESCRIPTION: u64 = 4 << 20;

/// Time limit for becoming ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time limit between the end of the connection and the end of the process.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A started successor process, which is killed if this is dropped before it is ready.
pub(crate) struct Successor {
    /// The process, until it is ready.
    child: Option<Child>,
    stream: UnixStream,
    description: Vec<u8>,
}

impl Successor {
    /// Starts the program that is now at this process's path, with its arguments and these sockets.
    ///
    /// # Errors
    /// Fails if the process cannot be started.
    pub(crate) fn start(sockets: &Sockets) -> io::Result<Self> {
        let mut arguments = env::args_os();
        let program: OsString =
            arguments.next().ok_or_else(|| io::Error::other("the program has no name"))?;
        let (ours, theirs) = net::UnixStream::pair()?;
        let description = Description::of(sockets);
        let mut inherited = description.descriptors();
        inherited.push(theirs.as_raw_fd());
        let mut command = Command::new(program);
        command.args(arguments);
        command.env(PREDECESSOR, format!("{} {}", theirs.as_raw_fd(), process::id()));
        let keep = move || {
            for &descriptor in &inherited {
                // SAFETY: the descriptor is open as long as the caller has the sockets, which it keeps until the
                // child has started.
                let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
                rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec the closure makes system calls only, and allocates nothing.
        unsafe { command.pre_exec(keep) };
        let child = command.spawn()?;
        ours.set_nonblocking(true)?;
        let mut description = serde_json::to_vec(&description)?;
        description.push(b'\n');
        Ok(Self { child: Some(child), stream: UnixStream::from_std(ours)?, description })
    }

    /// Waits until the process is ready, and releases it. Returns its process id.
    ///
    /// # Errors
    /// Returns the reason if it does not become ready; the process is then killed.
    pub(crate) async fn serves(mut self) -> io::Result<u32> {
        let mut said = [0; READY.len()];
        let conversation = async {
            self.stream.write_all(&self.description).await?;
            self.stream.read_exact(&mut said).await
        };
        match timeout(PATIENCE, conversation).await {
            Ok(Ok(_)) if said == READY => {}
            Ok(_) => return Err(self.failure().await),
            Err(_) => return Err(io::Error::other(format!("not ready after {PATIENCE:?}"))),
        }
        let Some(mut child) = self.child.take() else { return Err(self.failure().await) };
        let pid = child.id().ok_or_else(|| io::Error::other("the process has ended"))?;
        // This task reaps the process if it ends during the life of this one.
        drop(tokio::spawn(async move { child.wait().await }));
        Ok(pid)
    }

    /// Returns the reason why the process has closed the connection.
    async fn failure(&mut self) -> io::Error {
        let Some(child) = &mut self.child else { return io::Error::other("the process was not started") };
        match timeout(LAST_WORDS, child.wait()).await {
            Ok(Ok(status)) => io::Error::other(format!("the process has ended: {status}")),
            Ok(Err(error)) => error,
            Err(_) => io::Error::other("the process does not report readiness"),
        }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // The process may have ended already.
            let _ = child.start_kill();
        }
    }
}
