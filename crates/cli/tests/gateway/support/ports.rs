//! Ports for servers that cannot choose one themselves.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicU16, Ordering},
};

/// A port that nobody listens on. It lies below those that Linux gives to clients, so that nobody gets it meanwhile.
pub fn free() -> u16 {
    const FIRST: u16 = 12_000;
    const COUNT: u16 = 20_000;
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let start = u16::try_from(std::process::id() % u32::from(COUNT)).expect("below the count");
    loop {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = FIRST + (start + step) % COUNT;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
