//! The process that comes after this one.

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

/// Says to the next process on which descriptor its predecessor speaks, and which process that is.
pub(super) const PREDECESSOR: &str = "QUADRILLE_PREDECESSOR";

/// What the next process says when it serves.
pub(super) const READY: &[u8] = b"ready\n";

/// Bytes of what is said of the sockets.
pub(super) const MOST_DESCRIPTION: u64 = 4 << 20;

/// How long it may take to serve.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long it may take from closing its connection to its end.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A process that has been started, and ended if it is dropped before it serves.
pub(crate) struct Successor {
    /// Until it serves.
    child: Option<Child>,
    stream: UnixStream,
    description: Vec<u8>,
}

impl Successor {
    /// Starts what is now in the place of this process's program, with its arguments and these sockets.
    ///
    /// # Errors
    /// If it cannot be started.
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
                // SAFETY: it is open as long as the caller has the sockets, which it has until the child has begun.
                let descriptor = unsafe { BorrowedFd::borrow_raw(descriptor) };
                rustix::io::fcntl_setfd(descriptor, FdFlags::empty())?;
            }
            Ok(())
        };
        // SAFETY: between fork and exec it makes system calls only, and allocates nothing.
        unsafe { command.pre_exec(keep) };
        let child = command.spawn()?;
        ours.set_nonblocking(true)?;
        let mut description = serde_json::to_vec(&description)?;
        description.push(b'\n');
        Ok(Self { child: Some(child), stream: UnixStream::from_std(ours)?, description })
    }

    /// Waits until it serves, and lets it live. Answers its process id.
    ///
    /// # Errors
    /// Says why it does not serve; then it is ended.
    pub(crate) async fn serves(mut self) -> io::Result<u32> {
        let mut said = [0; READY.len()];
        let conversation = async {
            self.stream.write_all(&self.description).await?;
            self.stream.read_exact(&mut said).await
        };
        match timeout(PATIENCE, conversation).await {
            Ok(Ok(_)) if said == READY => {}
            Ok(_) => return Err(self.failure().await),
            Err(_) => return Err(io::Error::other(format!("it does not serve after {PATIENCE:?}"))),
        }
        let Some(mut child) = self.child.take() else { return Err(self.failure().await) };
        let pid = child.id().ok_or_else(|| io::Error::other("it has ended"))?;
        // Nobody else reaps it while this process lives.
        drop(tokio::spawn(async move { child.wait().await }));
        Ok(pid)
    }

    /// Why it has closed the connection.
    async fn failure(&mut self) -> io::Error {
        let Some(child) = &mut self.child else { return io::Error::other("it was not started") };
        match timeout(LAST_WORDS, child.wait()).await {
            Ok(Ok(status)) => io::Error::other(format!("it has ended: {status}")),
            Ok(Err(error)) => error,
            Err(_) => io::Error::other("it does not say that it serves"),
        }
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended by itself.
            let _ = child.start_kill();
        }
    }
}
