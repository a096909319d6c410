//! Lookup of the processes that listen on an address, in `/proc`.

use procfs::{
    net::{TcpState, tcp, tcp6},
    process::{FDTarget, all_processes},
};
use std::{collections::BTreeSet, net::SocketAddr};

/// Reason that there is no process to sample.
#[derive(Debug, thiserror::Error)]
pub enum NoProcess {
    /// No process listens on the address.
    #[error("no process listens on {0} of this machine")]
    NoListener(SocketAddr),
    /// A process listens on the address, but cannot be identified.
    #[error(
        "a process listens on {0}, but only root and its own user can identify it: run this as one of them, or use --pid"
    )]
    Hidden(SocketAddr),
    /// `/proc` cannot be read.
    #[error("/proc cannot be read: {0}")]
    Proc(#[from] procfs::ProcError),
}

/// Returns every process with a socket that listens on `address`: on its port, and on the address itself or all
/// addresses. A master with workers yields several.
pub fn listening_on(address: SocketAddr) -> Result<Vec<u32>, NoProcess> {
    let sockets = sockets_of(address)?;
    if sockets.is_empty() {
        return Err(NoProcess::NoListener(address));
    }
    let mut owners = Vec::new();
    for process in all_processes()?.flatten() {
        // Processes may have ended, and those of other users are not readable.
        let Ok(descriptors) = process.fd() else { continue };
        let owns = |target: FDTarget| matches!(target, FDTarget::Socket(inode) if sockets.contains(&inode));
        if descriptors.flatten().any(|descriptor| owns(descriptor.target)) {
            owners.extend(u32::try_from(process.pid));
        }
    }
    if owners.is_empty() { Err(NoProcess::Hidden(address)) } else { Ok(owners) }
}

/// Returns the name of a process, as the kernel keeps it.
pub fn program_of(process: u32) -> Option<String> {
    let stat = procfs::process::Process::new(i32::try_from(process).ok()?).ok()?.stat().ok()?;
    Some(stat.comm)
}

/// Returns the inodes of the sockets that listen on the address.
fn sockets_of(address: SocketAddr) -> Result<BTreeSet<u64>, NoProcess> {
    // A system without IPv6 has no second table.
    let entries = tcp()?.into_iter().chain(tcp6().unwrap_or_default());
    let listens = |local: SocketAddr| {
        local.port() == address.port() && (local.ip() == address.ip() || local.ip().is_unspecified())
    };
    Ok(entries
        .filter(|entry| entry.state == TcpState::Listen && listens(entry.local_address))
        .map(|entry| entry.inode)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn listening_processes_are_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listening_on(address).unwrap(), [std::process::id()]);
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(listening_on(SocketAddr::from(([127, 0, 0, 1], port))).unwrap(), [std::process::id()]);
        drop(listener);
        assert!(matches!(listening_on(address), Err(NoProcess::NoListener(_))));
        assert!(program_of(std::process::id()).is_some());
    }
}
