//! A TLS client in this process, for what s_client cannot do: hundreds of connections, newer groups, broken hellos.

use boring::ssl::{Ssl, SslContext, SslContextBuilder, SslMethod, SslStreamBuilder, SslVerifyMode};
use std::io::{self, Read, Write};

/// A client that verifies nothing, to be configured further.
pub fn tls_client(configure: impl FnOnce(&mut SslContextBuilder)) -> SslContext {
    let mut builder = SslContext::builder(SslMethod::tls()).expect("a context");
    builder.set_verify(SslVerifyMode::NONE);
    configure(&mut builder);
    builder.build()
}

/// The bytes of a ClientHello, record header included.
pub fn client_hello(context: &SslContext) -> Vec<u8> {
    client_hello_of(Ssl::new(context).expect("a session"))
}

/// The same of a connection that is about to begin.
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
