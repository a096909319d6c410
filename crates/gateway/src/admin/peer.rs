//! Users of the admin socket, identified by the kernel.

use crate::process::unix_socket::group_id;
use quadrille_config::model::AdminSocket;
use std::{io, net::Ipv4Addr, os::fd::AsRawFd};
use tokio::net::UnixStream;

/// The users that the socket admits: root, the process's own user, `users`, and the members of `group`.
pub(super) struct Admitted {
    users: Vec<u32>,
    group: Option<u32>,
}

/// The process at the other end of a connection.
pub(super) struct Peer {
    user: u32,
    groups: Vec<u32>,
}

impl Admitted {
    /// Reads the settings.
    ///
    /// # Errors
    /// If the group does not exist.
    pub(super) fn new(settings: &AdminSocket) -> io::Result<Self> {
        let own = [0, rustix::process::geteuid().as_raw()];
        let users = settings.users.iter().copied().chain(own).collect();
        let group = settings.access.group.as_deref().map(group_id).transpose()?;
        Ok(Self { users, group })
    }

    /// Returns whether a process may use the socket.
    pub(super) fn has(&self, peer: &Peer) -> bool {
        let member = |group| peer.groups.contains(&group);
        self.users.contains(&peer.user) || self.group.is_some_and(member)
    }
}

impl Peer {
    /// Identifies the process that has opened the connection.
    pub(super) fn of(stream: &UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let mut groups = supplementary_groups(stream)?;
        groups.push(credentials.gid());
        Ok(Self { user: credentials.uid(), groups })
    }

    /// Returns the user's id.
    pub(super) fn user(&self) -> u32 {
        self.user
    }

    /// Returns an address that stands for the user where clients are limited by address.
    pub(super) fn as_client(&self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.user)
    }
}

/// Returns the supplementary groups that the process had when it connected (`SO_PEERGROUPS`, Linux 4.13).
fn supplementary_groups(stream: &UnixStream) -> io::Result<Vec<u32>> {
    // The kernel's own limit is NGROUPS_MAX, 65,536 groups.
    let mut groups = vec![0_u32; 64];
    loop {
        let mut length = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the descriptor is open, and the buffer has the given length, which the kernel does not exceed.
        let read = unsafe {
            libc::getsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        let count = length as usize / size_of::<u32>();
        match (read, io::Error::last_os_error()) {
            (0, _) => {
                groups.truncate(count);
                return Ok(groups);
            }
            (_, error) if error.raw_os_error() == Some(libc::ERANGE) && count > groups.len() => {
                groups.resize(count, 0);
            }
            (_, error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Admitted, Peer};

    #[test]
    fn users_and_members_of_the_group_are_admitted() {
        let admitted = Admitted { users: vec![0, 7], group: Some(20) };
        let has = |user, groups: &[u32]| admitted.has(&Peer { user, groups: groups.to_vec() });
        assert!(has(0, &[]) && has(7, &[1]) && has(8, &[1, 20]));
        assert!(!has(8, &[1]) && !has(20, &[7]));
        assert!(!Admitted { users: vec![0], group: None }.has(&Peer { user: 1, groups: vec![0] }));
    }
}
