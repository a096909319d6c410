//! A proxy that delays a server.

use std::{
    io::{Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

/// Relays bytes in both directions, the server's with a delay.
pub struct SlowProxy {
    pub address: SocketAddr,
    delay_ms: Arc<AtomicU64>,
}

impl SlowProxy {
    /// Starts a proxy in front of this server, without delay.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let delay_ms = Arc::new(AtomicU64::new(0));
        let delay = Arc::clone(&delay_ms);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(server) else { continue };
                let (back, there) =
                    (client.try_clone().expect("a clone"), server.try_clone().expect("a clone"));
                let none = Arc::default();
                thread::spawn(move || pass(client, there, &none));
                let delay = Arc::clone(&delay);
                thread::spawn(move || pass(server, back, &delay));
            }
        });
        Self { address, delay_ms }
    }

    /// Delays the server's data by this time from now on.
    pub fn delay(&self, delay: Duration) {
        self.delay_ms.store(u64::try_from(delay.as_millis()).expect("a short delay"), Ordering::Relaxed);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, delay_ms: &AtomicU64) {
    let mut buffer = [0; 65536];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        thread::sleep(Duration::from_millis(delay_ms.load(Ordering::Relaxed)));
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
