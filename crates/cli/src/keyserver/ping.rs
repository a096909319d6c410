//! `quadrille keyserver ping`.

use super::remote::{Remote, block_on, key_of, usual_scheme};
use quadrille_config::values;
use quadrille_engine::Operation;
use quadrille_keyless::{
    Address,
    client::{self, Client, Connector, Origin, RemoteKey, Settings},
};
use std::{
    num::NonZeroUsize,
    path::PathBuf,
    time::{Duration, Instant},
};

/// Connects to each key server as a gateway would, pings it, and, with --for, requests signatures with that
/// certificate's key. Exits with status 2 if a server does not respond or does not hold the key.
///
///   quadrille keyserver ping --server keys-1:2407 --ca keys-ca.pem --cert gateway.pem --key gateway.key \
///     --for example.com.pem
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Ping {
    #[command(flatten)]
    remote: Remote,
    /// A certificate in PEM, to check that the server holds its key.
    #[arg(long = "for", value_name = "FILE")]
    certificate: Option<PathBuf>,
    /// Number of operations to time.
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "10")]
    count: NonZeroUsize,
    /// Number of operations in flight, to measure a rate.
    #[arg(long, value_name = "N", value_parser = values::count, default_value = "1")]
    in_flight: NonZeroUsize,
    /// Maximum time to wait for each response.
    #[arg(long, value_name = "TIME", value_parser = values::timeout, default_value = "5s")]
    timeout: Duration,
}

impl Ping {
    pub(super) fn run(self) -> Result<(), Vec<String>> {
        let settings = self.remote.settings()?;
        let key = self.certificate.as_deref().map(key_of).transpose()?;
        block_on(async {
            let mut problems = Vec::new();
            for server in self.remote.servers() {
                if let Err(problem) = self.server(&settings, server, key.as_ref()).await {
                    problems.push(format!("{server}: {problem}"));
                }
            }
            if problems.is_empty() { Ok(()) } else { Err(problems) }
        })
    }

    async fn server(
        &self,
        settings: &Settings,
        server: &Address,
        key: Option<&RemoteKey>,
    ) -> Result<(), String> {
        let connector = Connector::new(settings).map_err(|error| error.to_string())?;
        let pong = client::ping(&connector, server, self.timeout).await.map_err(|error| error.to_string())?;
        println!(
            "{server}: up ({} mode, {}); connecting took {}, a ping {}",
            pong.mode,
            pong.security,
            shown(pong.connected),
            shown(pong.round_trip)
        );
        match key {
            Some(key) => self.operations(settings, server, key).await,
            None => Ok(()),
        }
    }

    async fn operations(&self, settings: &Settings, server: &Address, key: &RemoteKey) -> Result<(), String> {
        let failover = client::FailoverPolicy { deadline: self.timeout, ..settings.failover };
        let settings = Settings { servers: vec![server.clone()], failover, ..settings.clone() };
        let client = Client::new(settings).map_err(|error| error.to_string())?;
        // The first operation includes connection setup.
        timed(&client, key, 1).await?;
        let share = self.count.get().div_ceil(self.in_flight.get());
        let began = Instant::now();
        let asking: Vec<_> = (0..self.in_flight.get())
            .map(|_| {
                let (client, key) = (client.clone(), key.clone());
                tokio::spawn(async move { timed(&client, &key, share).await })
            })
            .collect();
        let mut times = Vec::new();
        for asked in asking {
            times.append(&mut asked.await.map_err(|error| error.to_string())??);
        }
        let rate = times.len() as f64 / began.elapsed().as_secs_f64();
        times.sort();
        let (least, median, most) = (times[0], times[times.len() / 2], times[times.len() - 1]);
        println!(
            "{server}: holds the key {} ({}); {} signatures: least {}, median {}, most {}; {rate:.0} a second",
            key.ski(),
            key.key_type(),
            times.len(),
            shown(least),
            shown(median),
            shown(most)
        );
        Ok(())
    }
}

/// Times this many operations, one after the other.
async fn timed(client: &Client, key: &RemoteKey, count: usize) -> Result<Vec<Duration>, String> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let operation = Operation::sign(usual_scheme(key.key_type()), b"quadrille keyserver ping");
        let operation = operation.map_err(|error| error.to_string())?;
        let began = Instant::now();
        let answer = client.submit(key, operation, Origin::default(), false);
        let answer = answer.map_err(|failure| failure.to_string())?.await;
        answer.map_err(|failure| format!("key {}: {failure}", key.ski()))?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn shown(time: Duration) -> String {
    format!("{} us", time.as_micros())
}
