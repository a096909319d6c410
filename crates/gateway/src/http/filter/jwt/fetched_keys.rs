//! Keys of issuers that are fetched: for the first token that needs them, and again before they expire.
//!
//! A fetch does not depend on a request: it continues when the client whose token started it disconnects, and other
//! requests wait for it.

use super::{keys::KeySet, status::Problem, token::Token};
use crate::{
    connection::Connection,
    http::filter::service_call::{CallError, ServiceCall, ServiceResponse, direct},
    telemetry::access_denied as metrics,
    upstream::{ConnectionPool, RequestBody, Upstream},
};
use arc_swap::ArcSwapOption;
use http::{
    HeaderValue, Request, StatusCode, Uri, header,
    uri::{Authority, PathAndQuery},
};
use quadrille_config::model::RemoteKeys;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};
use tokio::sync::watch;

/// Maximum size of a key set, in bytes: more than the largest issuers have.
const LARGEST_SET: usize = 1024 * 1024;

/// All key fetchers of a configuration. Fetched keys are kept across reloads.
#[derive(Clone, Default)]
pub(crate) struct KeyFetchers(HashMap<RemoteKeys, Arc<FetchedKeys>>);

impl KeyFetchers {
    /// Adds a fetcher for these keys, with the keys that were fetched before.
    pub(crate) fn take(&mut self, model: &RemoteKeys, before: &Self) {
        if !self.0.contains_key(model) {
            let known = before.0.get(model).cloned();
            self.0.insert(model.clone(), known.unwrap_or_else(|| Arc::new(FetchedKeys::new(model))));
        }
    }

    pub(super) fn of(&self, model: &RemoteKeys) -> Arc<FetchedKeys> {
        self.0.get(model).cloned().unwrap_or_else(|| Arc::new(FetchedKeys::new(model)))
    }
}

/// The keys of one issuer.
pub(super) struct FetchedKeys {
    model: RemoteKeys,
    known: ArcSwapOption<Known>,
    attempts: Mutex<Attempts>,
}

struct Known {
    keys: KeySet,
    since: Instant,
}

#[derive(Default)]
struct Attempts {
    /// Closed when the current fetch ends.
    under_way: Option<watch::Receiver<()>>,
    /// Time of the last failure, unless a fetch succeeded since.
    failed: Option<Instant>,
}

impl FetchedKeys {
    fn new(model: &RemoteKeys) -> Self {
        Self { model: model.clone(), known: ArcSwapOption::empty(), attempts: Mutex::default() }
    }

    /// Checks that one of the keys has signed the token.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), Problem> {
        match &*self.known.load() {
            Some(known) if self.may_be_used(known) => known.keys.verify(token),
            _ => Err(Problem::FetchFailed),
        }
    }

    /// Returns whether the keys are available and need no refresh.
    pub(super) fn is_fresh(&self) -> bool {
        self.known.load().as_ref().is_some_and(|known| self.is_young(known))
    }

    /// Fetches the keys if necessary. A refresh before the keys expire runs in the background.
    pub(super) async fn prepare(
        self: &Arc<Self>,
        upstream: Option<&Arc<Upstream>>,
        connection: &Arc<Connection>,
        pool: &Arc<ConnectionPool>,
    ) {
        let is_usable = match &*self.known.load() {
            Some(known) if self.is_young(known) => return,
            Some(known) => self.may_be_used(known),
            None => false,
        };
        let under_way = self.begin(upstream, connection, pool);
        if let Some(mut under_way) = under_way.filter(|_| !is_usable) {
            // No value is ever sent: the channel is closed.
            let _ = under_way.changed().await;
        }
    }

    /// Returns whether no refresh is due. The last fifth of the lifetime is for the refresh.
    fn is_young(&self, known: &Known) -> bool {
        known.since.elapsed() < self.model.lifetime / 5 * 4
    }

    fn may_be_used(&self, known: &Known) -> bool {
        self.model.outlive || known.since.elapsed() < self.model.lifetime
    }

    /// Returns the current fetch, or starts one unless one failed recently.
    fn begin(
        self: &Arc<Self>,
        upstream: Option<&Arc<Upstream>>,
        connection: &Arc<Connection>,
        pool: &Arc<ConnectionPool>,
    ) -> Option<watch::Receiver<()>> {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(under_way) = attempts.under_way.as_ref().filter(|one| one.has_changed().is_ok()) {
            return Some(under_way.clone());
        }
        if attempts.failed.is_some_and(|failed| failed.elapsed() < self.model.retry_after) {
            return None;
        }
        let (ends, under_way) = watch::channel(());
        attempts.under_way = Some(under_way.clone());
        let (keys, upstream) = (Arc::clone(self), upstream.cloned());
        let (connection, pool) = (Arc::clone(connection), Arc::clone(pool));
        drop(tokio::spawn(async move {
            keys.fetch(upstream.as_ref(), &connection, &pool).await;
            drop(ends);
        }));
        Some(under_way)
    }

    async fn fetch(
        &self,
        upstream: Option<&Arc<Upstream>>,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) {
        let outcome = self.ask(upstream, connection, pool).await;
        metrics::token_keys_fetched(outcome.is_ok());
        let failed_before = {
            let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
            let failed = outcome.is_err().then(Instant::now);
            std::mem::replace(&mut attempts.failed, failed).is_some()
        };
        let uri = &self.model.uri;
        match outcome {
            Ok(keys) => {
                if failed_before {
                    tracing::info!(%uri, "token keys are fetched again");
                }
                self.known.store(Some(Arc::new(Known { keys, since: Instant::now() })));
            }
            Err(error) if failed_before => {
                tracing::debug!(%uri, error = error.text(), "still cannot fetch token keys");
            }
            Err(error) => tracing::warn!(%uri, error = error.text(), "cannot fetch token keys"),
        }
    }

    async fn ask(
        &self,
        upstream: Option<&Arc<Upstream>>,
        connection: &Connection,
        pool: &Arc<ConnectionPool>,
    ) -> Result<KeySet, CallError> {
        let call = ServiceCall {
            upstream,
            authority: self.model.uri.authority().map(Authority::as_str),
            client: connection.client,
            connection,
            pool,
            timeout: self.model.timeout,
            largest_response: LARGEST_SET,
        };
        let ServiceResponse { head, body, .. } =
            call.send(|http2, scheme| question(&self.model.uri, http2, scheme)).await?;
        if head.status() != StatusCode::OK {
            return Err(CallError::Invalid("the response status is not 200"));
        }
        KeySet::parse(&body).map_err(CallError::Invalid)
    }
}

/// Builds the `GET` request for the keys.
fn question(uri: &Uri, http2: bool, scheme: &str) -> Result<Request<RequestBody>, CallError> {
    let authority = uri.authority().map_or("", Authority::as_str);
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut request = Request::new(RequestBody::default());
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    direct(&mut request, http2.then_some(scheme), authority, path)
        .ok_or(CallError::Invalid("the request for this URI is invalid"))?;
    Ok(request)
}
