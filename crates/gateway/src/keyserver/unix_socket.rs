//! A key server's socket for users of this machine, and who may connect to it.

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

/// Why there is no socket.
pub(super) enum BindError {
    Socket(io::Error),
    Group(io::Error),
}

/// Takes the place of a socket that nobody listens on any more. Without a policy that says which users are served, only
/// this one may connect; with one, whoever is in the socket's group, unless the settings say otherwise.
pub(super) fn bind(path: &Path, access: &UnixAccess, has_policy: bool) -> Result<UnixListener, BindError> {
    let group = access.group.as_deref().map(group_id).transpose().map_err(BindError::Group)?;
    let mode = access.mode.unwrap_or(if has_policy { 0o660 } else { 0o600 });
    let socket = open(path).map_err(BindError::Socket)?;
    // Until here the umask holds: the group that comes may not connect before it is there.
    chown(path, None, group).map_err(BindError::Group)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(BindError::Socket)?;
    Ok(socket)
}

fn open(path: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

/// The number of a group, which may be given as one.
fn group_id(name: &str) -> io::Result<u32> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let c_name = CString::new(name)?;
    // What a group's members take, who are not asked for; larger groups are read with more.
    let mut buffer = vec![0; 16 * 1024];
    loop {
        // SAFETY: all zeros are a valid `group`: numbers and null pointers.
        let mut entry: libc::group = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        // SAFETY: the name ends with a zero, the buffer has the length that is given, and all outlive the call.
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
    /// What to tell whoever starts the server.
    pub(super) fn problem(&self, path: &Path) -> Problem {
        let (error, remedy) = match self {
            Self::Socket(error) => (error, socket_remedy(error)),
            Self::Group(error) => (error, "name a group of this machine that this user belongs to"),
        };
        Problem::new(format!("cannot listen on unix:{}: {error}", path.display()), remedy)
    }
}

fn socket_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process listens there, or a file of another kind is in the way",
        io::ErrorKind::NotFound => "make its directory first",
        io::ErrorKind::PermissionDenied => "choose a directory that this user may write to",
        _ => "choose another path",
    }
}
