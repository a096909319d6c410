//! Unix sockets of this process, and their permissions.

use quadrille_config::model::{Problem, UnixAccess};
use std::{
    ffi::CString,
    fs, io,
    os::unix::{
        fs::{FileTypeExt, PermissionsExt, chown},
        net::{UnixListener, UnixStream},
    },
    path::Path,
    ptr,
};

/// Errors of [`bind`].
pub(crate) enum BindError {
    Socket(io::Error),
    Group(io::Error),
}

/// Binds the socket, and replaces one without a listener. The mode is `mode` unless the settings have one.
pub(crate) fn bind(path: &Path, access: &UnixAccess, mode: u32) -> Result<UnixListener, BindError> {
    // An unknown group is an error before a file exists.
    access.group.as_deref().map(group_id).transpose().map_err(BindError::Group)?;
    let socket = open(path).map_err(BindError::Socket)?;
    // The umask restricts access until here: the previous group may not connect before the group is set.
    permit(path, access, mode)?;
    Ok(socket)
}

/// Sets group and mode of a bound socket, as [`bind`] does.
pub(crate) fn permit(path: &Path, access: &UnixAccess, mode: u32) -> Result<(), BindError> {
    let group = access.group.as_deref().map(group_id).transpose().map_err(BindError::Group)?;
    chown(path, None, group).map_err(BindError::Group)?;
    let mode = access.mode.unwrap_or(mode);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(BindError::Socket)
}

fn open(path: &Path) -> io::Result<UnixListener> {
    match UnixStream::connect(path) {
        Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        // Its process has ended. A socket that this user may not connect to can have a listener.
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
            fs::remove_file(path)?;
        }
        Err(_) => {}
    }
    UnixListener::bind(path)
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket())
}

/// Returns the id of a group, given by name or number.
///
/// # Errors
/// If the group does not exist.
pub(crate) fn group_id(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let c_name = CString::new(name)?;
    // Initial size; also holds the group's members, which are not used. Large groups require a larger buffer.
    let mut buffer = vec![0; 16 * 1024];
    loop {
        // SAFETY: all zeros are a valid `group`: numbers and null pointers.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        // SAFETY: the name is NUL-terminated, the buffer has the given length, and all outlive the call.
        let status = unsafe {
            libc::getgrnam_r(c_name.as_ptr(), &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut found)
        };
        match status {
            0 if found.is_null() => return Err(io::Error::other(format!("there is no group `{name}`"))),
            0 => return Ok(entry.gr_gid),
            libc::ERANGE if buffer.len() < 1024 * 1024 => buffer.resize(buffer.len() * 2, 0),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

impl BindError {
    /// Returns the problem to report when the server starts.
    pub(crate) fn problem(&self, path: &Path) -> Problem {
        let (error, remedy) = match self {
            Self::Socket(error) => (error, socket_remedy(error)),
            Self::Group(error) => (error, "name a group of this machine that this user belongs to"),
        };
        Problem::new(format!("cannot listen on unix:{}: {error}", path.display()), remedy)
    }
}

fn socket_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process listens on it, or it is not a socket",
        io::ErrorKind::NotFound => "create its directory first",
        io::ErrorKind::PermissionDenied => "choose a directory that this user may write to",
        _ => "choose another path",
    }
}
