//! A TLS client in this process, for features that s_client lacks: hundreds of connections, newer groups, malformed
//! hellos.

use boring::ssl::{Ssl, SslContext, SslContextBuilder, SslMethod, SslStreamBuilder, SslVerifyMode};
use std::io::{self, Read, Write};

/// Returns a client without verification, to be configured further.
pub fn tls_client(configure: impl FnOnce(&mut SslContextBuilder)) -> SslContext {
    let mut builder = SslContext::builder(SslMethod::tls()).expect("a context");
    builder.set_verify(SslVerifyMode::NONE);
    configure(&mut builder);
    builder.build()
}

/// Returns the bytes of a ClientHello, including the record header.
pub fn client_hello(context: &SslContext) -> Vec<u8> {
    client_hello_of(Ssl::new(context).expect("a session"))
}

/// Returns the ClientHello of a new connection.
pub fn client_hello_of(ssl: Ssl) -> Vec<u8> {
    let mut recorder = Recorder(Vec::new());
    // The handshake ends at the first read: there is no server.
    assert!(SslStreamBuilder::new(ssl, &mut recorder).connect().is_err(), "a handshake without a server");
    assert_eq!(recorder.0.first(), Some(&22), "no handshake record");
    recorder.0
}

struct Recorder(Vec<u8>);

impl Read for Recorder {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl Write for Recorder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
