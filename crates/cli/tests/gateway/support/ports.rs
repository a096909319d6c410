//! Ports for servers that cannot choose one themselves.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A port that nobody listens on. It lies below those that Linux gives to clients, so that nobody gets it meanwhile.
pub fn free() -> u16 {
    const FIRST: usize = 12_000;
    const COUNT: usize = 20_000;
    /// Of these each of the tests that cargo-nextest runs at the same time, each a process, has its own.
    const BLOCK: usize = 1_000;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse::<usize>().ok());
    let process = std::process::id() as usize;
    loop {
        let step = process + NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = slot.map_or(step, |slot| slot * BLOCK + step % BLOCK);
        let port = u16::try_from(FIRST + offset % COUNT).expect("below 32,768");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
