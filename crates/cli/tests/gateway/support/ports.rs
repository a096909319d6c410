//! Ports for servers that cannot bind port 0.

use std::{
    net::TcpListener,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Returns a free port. It is below Linux's ephemeral ports, so that no client uses it meanwhile; under
/// scripts/isolate.sh no other test shares the ports. Istio reserves some from 15,000 on.
pub fn free() -> u16 {
    const FIRST: usize = 16_000;
    const COUNT: usize = 16_000;
    /// The range of ports, divided among the test processes that cargo-nextest runs concurrently.
    const BLOCK: usize = 1_000;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let slot = std::env::var("NEXTEST_TEST_GLOBAL_SLOT").ok().and_then(|slot| slot.parse::<usize>().ok());
    let process = std::process::id() as usize;
    loop {
        let step = process + NEXT.fetch_add(1, Ordering::Relaxed);
        let offset = slot.map_or(step, |slot| slot * BLOCK + step % BLOCK);
        let port = u16::try_from(FIRST + offset % COUNT).expect("below 32,768");
        // The port must be free on all addresses, since some servers bind all.
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}
