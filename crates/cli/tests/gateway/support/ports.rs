//! Ports for servers that cannot choose one themselves.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
};

/// A port on which nothing listens. It lies below those that Linux gives to clients, so that no client gets it meanwhile; under
/// scripts/isolate.sh no other test shares the ports. Istio keeps some from 15,000 on for itself.
pub fn free() -> u16 {
    const FIRST: usize = 16_000;
    const COUNT: usize = 16_000;
    /// Of these each of the tests that cargo-nextest runs at the same time, each a process, has its own.
    const BLOCK: usize = 1_000;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse::<usize>().ok());
    let process = std::process::id() as usize;
    loop {
        let step = process + NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = slot.map_or(step, |slot| slot * BLOCK + step % BLOCK);
        let port = u16::try_from(FIRST + offset % COUNT).expect("below 32,768");
        // Some servers listen on all addresses.
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}
