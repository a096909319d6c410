//! Transmission of datagrams: in bursts of equally sized ones, paced by congestion control.

use super::{
    amplification::Amplification,
    socket::{DatagramSocket, Ends},
};
use std::{
    cell::RefCell,
    collections::VecDeque,
    future::Future,
    io::ErrorKind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Maximum size of a burst in bytes: the kernel's limit for GSO.
const LARGEST_BURST: usize = 65_000;

/// Time within which a burst is sent early: timers of the event loop have no finer resolution.
const SOON: Duration = Duration::from_millis(1);

/// Cost of a received datagram in addition to its bytes, in bytes: some 4 us of CPU time.
const RECEIVED: usize = 4 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; LARGEST_BURST].into());
}

/// Send queue of a connection.
pub(super) struct Transmission {
    socket: Arc<DatagramSocket>,
    amplification: Amplification,
    /// Bursts that could not be sent yet.
    held: VecDeque<Burst<Vec<u8>>>,
    /// Work since the last [`take_work`](Self::take_work).
    work: usize,
    /// Pending until the kernel has room again.
    blocked: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

struct Burst<B> {
    contents: B,
    segment: usize,
    ends: Ends,
    at: Instant,
}

/// A datagram created by quiche.
struct Datagram {
    size: usize,
    ends: Ends,
    at: Instant,
}

impl Transmission {
    /// Creates the queue; `is_proven` is whether the client's address is validated.
    pub(super) fn new(socket: Arc<DatagramSocket>, is_proven: bool) -> Self {
        let amplification = Amplification::new(is_proven);
        Self { socket, amplification, held: VecDeque::new(), work: 0, blocked: None }
    }

    /// Counts a received datagram, which raises the anti-amplification limit.
    pub(super) fn receives(&mut self, size: usize) {
        self.amplification.receives(size);
        self.work += size + RECEIVED;
    }

    /// Returns whether a packet of this datagram validates the client's address if quiche processes it.
    pub(super) fn may_be_validated_by(&self, datagram: &[u8]) -> bool {
        self.amplification.may_be_lifted_by(datagram)
    }

    /// Lifts the anti-amplification limit, because the client's address is validated.
    pub(super) fn validated(&mut self) {
        self.amplification.lift();
    }

    /// Returns the work since the last call: the bytes that were sent and received, and what each received datagram
    /// costs in addition, in the bytes that cost as much.
    pub(super) fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    /// Returns when sending continues by itself.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.front().filter(|_| self.blocked.is_none()).map(|burst| burst.at)
    }

    /// Sends pending datagrams, unless it is too early or the kernel has no room. quiche creates them with this
    /// thread's BoringSSL; an error ends the connection.
    pub(super) fn send(&mut self, quic: &mut quiche::Connection, context: &mut Context<'_>) {
        loop {
            if let Some(blocked) = &mut self.blocked {
                match blocked.as_mut().poll(context) {
                    Poll::Ready(()) => self.blocked = None,
                    Poll::Pending => return,
                }
            }
            if let Some(burst) = self.held.pop_front() {
                if !self.leaves(&burst) {
                    self.held.push_front(burst);
                    if self.blocked.is_none() {
                        return;
                    }
                }
                continue;
            }
            let more = SCRATCH.with_borrow_mut(|scratch| self.send_next(quic, scratch));
            if !more {
                return;
            }
        }
    }

    /// Sends one more burst; returns false if there is no data.
    fn send_next(&mut self, quic: &mut quiche::Connection, scratch: &mut [u8]) -> bool {
        let Some(first) = self.next(quic, scratch) else { return false };
        let mut burst = Burst { contents: first.size, segment: first.size, ends: first.ends, at: first.at };
        let mut odd = None;
        // Smaller datagrams are sent separately: the following ones might be larger.
        if first.size == quic.max_send_udp_payload_size() {
            let most = self.socket.most_segments() * first.size;
            let most = most.min(quic.send_quantum()).min(scratch.len());
            while burst.contents + first.size <= most {
                let end = burst.contents + first.size;
                let Some(datagram) = self.next(quic, &mut scratch[burst.contents..end]) else { break };
                let same =
                    (datagram.ends.client, datagram.ends.local) == (first.ends.client, first.ends.local);
                if !same {
                    odd = Some((burst.contents, datagram));
                    break;
                }
                burst.contents += datagram.size;
                if datagram.size < first.size {
                    break;
                }
            }
        }
        let contents = &scratch[..burst.contents];
        self.dispatch(Burst { contents, segment: burst.segment, ends: burst.ends, at: burst.at });
        if let Some((start, Datagram { size, ends, at })) = odd {
            self.dispatch(Burst { contents: &scratch[start..start + size], segment: size, ends, at });
        }
        true
    }

    /// Creates one more datagram, if there is data to send and the limit allows it.
    fn next(&mut self, quic: &mut quiche::Connection, out: &mut [u8]) -> Option<Datagram> {
        let room = self.amplification.room(quic).min(out.len());
        if room == 0 {
            return None;
        }
        let (size, info) = match quic.send(&mut out[..room]) {
            Ok(sent) => sent,
            Err(quiche::Error::Done) => return None,
            Err(error) => {
                tracing::debug!(%error, "QUIC connection cannot continue");
                let _ = quic.close(false, INTERNAL_ERROR, b"");
                return None;
            }
        };
        self.amplification.sends(size);
        self.work += size;
        Some(Datagram { size, ends: Ends { client: info.to, local: info.from }, at: info.at })
    }

    /// Sends a burst, or queues it.
    fn dispatch(&mut self, burst: Burst<&[u8]>) {
        if self.held.is_empty() && self.leaves(&burst) {
            return;
        }
        let Burst { contents, segment, ends, at } = burst;
        self.held.push_back(Burst { contents: contents.to_vec(), segment, ends, at });
    }

    fn leaves<B: AsRef<[u8]>>(&mut self, burst: &Burst<B>) -> bool {
        if burst.at > Instant::now() + SOON {
            return false;
        }
        match self.socket.send(burst.ends, burst.contents.as_ref(), burst.segment) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let socket = Arc::clone(&self.socket);
                self.blocked = Some(Box::pin(async move { socket.has_room().await }));
                false
            }
            // Other network errors are left to loss detection.
            _ => true,
        }
    }
}

/// Error code INTERNAL_ERROR (RFC 9000 section 20.1).
const INTERNAL_ERROR: u64 = 0x1;
