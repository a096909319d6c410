//! A closed loop of HTTP/3 clients, in one thread.

use std::{
    os::fd::AsFd,
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use boring::ssl::{SslContextBuilder, SslMethod, SslVerifyMode};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiche::h3;

use super::{
    connection::{Buffers, Connection},
    load::Load,
};

/// Timeout of a run.
const PATIENCE: Duration = Duration::from_secs(120);
/// Flow-control window: more than any server has in flight on loopback.
const WINDOW: u64 = 16 << 20;

/// Results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Full handshakes.
    pub handshakes: u64,
    /// Responses with status 200 and the whole body.
    pub requests: u64,
    /// Duration of the run.
    pub time: Duration,
}

impl Load {
    /// Makes all connections and requests. Returns an error if any of them fails.
    pub fn run(&self) -> Result<Done> {
        let (began, mut config) = (Instant::now(), self.config()?);
        let mut left = self.connections;
        let is_late = || self.begin_within.is_some_and(|limit| began.elapsed() >= limit);
        let (mut open, mut buffers) = (Vec::new(), Buffers::default());
        let mut done = Done::default();
        while left > 0 || !open.is_empty() {
            if is_late() {
                left = 0;
            }
            while left > 0 && open.len() < self.clients {
                open.push(Connection::open(self, &mut config)?);
                left -= 1;
            }
            if open.is_empty() {
                break;
            }
            wait(&open)?;
            for connection in &mut open {
                connection.turn(&mut buffers)?;
            }
            open.retain(|connection| {
                if connection.is_over() {
                    done.handshakes += 1;
                    done.requests += connection.answers();
                }
                !connection.is_over()
            });
            ensure!(began.elapsed() < PATIENCE, "not done after {} s", PATIENCE.as_secs());
        }
        done.time = began.elapsed();
        Ok(done)
    }

    fn config(&self) -> Result<quiche::Config> {
        let mut context = SslContextBuilder::new(SslMethod::tls())?;
        context.set_verify(SslVerifyMode::NONE);
        context.set_curves_list(&self.groups)?;
        let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, context)?;
        config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
        config.set_max_idle_timeout(30_000);
        config.set_initial_max_data(WINDOW);
        config.set_initial_max_stream_data_bidi_local(WINDOW);
        config.set_initial_max_stream_data_uni(1 << 18);
        config.set_initial_max_streams_uni(10);
        config.set_max_connection_window(WINDOW);
        config.set_max_stream_window(WINDOW);
        Ok(config)
    }
}

/// Waits until a datagram has arrived for a connection, or the timer of one expires.
fn wait(open: &[Connection]) -> Result<()> {
    let soonest = open.iter().filter_map(Connection::timeout).min().unwrap_or(PATIENCE);
    let timeout = PollTimeout::from(soonest.as_millis().min(1000) as u16 + 1);
    let mut sockets: Vec<_> =
        open.iter().map(|one| PollFd::new(one.socket().as_fd(), PollFlags::POLLIN)).collect();
    match poll(&mut sockets, timeout) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(error) => bail!("cannot wait for sockets: {error}"),
    }
}
