//! Which process listens at an address, from `/proc`.

use procfs::{
    net::{TcpState, tcp, tcp6},
    process::{FDTarget, all_processes},
};
use std::{collections::BTreeSet, net::SocketAddr};

/// Why there is no process to sample.
#[derive(Debug, thiserror::Error)]
pub enum NoProcess {
    /// Nobody listens there.
    #[error("nobody listens on {0} of this machine")]
    Nobody(SocketAddr),
    /// Somebody listens there, and it cannot be seen who.
    #[error(
        "somebody listens on {0}, but only root and that process's own user can see who: run this as one of them, or use --pid"
    )]
    Hidden(SocketAddr),
    /// `/proc` cannot be read.
    #[error("/proc cannot be read: {0}")]
    Proc(#[from] procfs::ProcError),
}

/// Every process that has a socket listening on `address`: its port, and the address itself or all addresses. With a
/// master and workers these are several.
pub fn listening_on(address: SocketAddr) -> Result<Vec<u32>, NoProcess> {
    let sockets = sockets_of(address)?;
    if sockets.is_empty() {
        return Err(NoProcess::Nobody(address));
    }
    let mut owners = Vec::new();
    for process in all_processes()?.flatten() {
        // Processes come and go, and those of others are closed to us.
        let Ok(descriptors) = process.fd() else { continue };
        let owns = |target: FDTarget| matches!(target, FDTarget::Socket(inode) if sockets.contains(&inode));
        if descriptors.flatten().any(|descriptor| owns(descriptor.target)) {
            owners.extend(u32::try_from(process.pid));
        }
    }
    if owners.is_empty() { Err(NoProcess::Hidden(address)) } else { Ok(owners) }
}

/// The name of a process, as the kernel keeps it.
pub fn program_of(process: u32) -> Option<String> {
    let stat = procfs::process::Process::new(i32::try_from(process).ok()?).ok()?.stat().ok()?;
    Some(stat.comm)
}

/// Inodes of the sockets that listen there.
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
    fn whoever_listens_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        assert_eq!(listening_on(address).unwrap(), [std::process::id()]);
        let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
        let port = everywhere.local_addr().unwrap().port();
        assert_eq!(listening_on(SocketAddr::from(([127, 0, 0, 1], port))).unwrap(), [std::process::id()]);
        drop(listener);
        assert!(matches!(listening_on(address), Err(NoProcess::Nobody(_))));
        assert!(program_of(std::process::id()).is_some());
    }
}
