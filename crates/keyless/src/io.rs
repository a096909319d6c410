//! The streams that frames travel on: TLS over TCP, Unix sockets, and TLS over those.

use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// Any of them.
pub(crate) type Stream = Pin<Box<dyn Duplex>>;

/// Reads and writes.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A socket read ahead: BoringSSL asks for the five bytes of a record's header, then for the record. One system call
/// takes what the kernel has.
pub(crate) type ReadAhead<S> = BufReader<S>;

/// How much is read ahead: a whole record, and what comes with it.
pub(crate) fn read_ahead<S: AsyncRead>(socket: S) -> ReadAhead<S> {
    BufReader::with_capacity(18 * 1024, socket)
}
