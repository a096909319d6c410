//! Transport streams: TLS over TCP, Unix sockets, and TLS over Unix sockets.

use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite, BufReader};

/// Any transport stream.
pub(crate) type Stream = Pin<Box<dyn Duplex>>;

/// Readable and writable stream.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// Buffered socket: BoringSSL reads the five bytes of a record's header, then the record. One system call reads all
/// available data.
pub(crate) type ReadAhead<S> = BufReader<S>;

/// Buffer size: a whole record, and data that arrives with it.
pub(crate) fn read_ahead<S: AsyncRead>(socket: S) -> ReadAhead<S> {
    BufReader::with_capacity(18 * 1024, socket)
}
