//! Keys of issuers that are fetched: by the first token that needs them, and again before they are too old.
//!
//! A fetch belongs to nobody: it goes on when the client whose token has begun it leaves, and others wait for it.

use super::{keys::KeySet, status::Problem, token::Token};
use crate::{
    connection::Connection,
    http::service_call::{CallError, ServiceAnswer, ServiceCall, direct},
    telemetry::access as metrics,
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

/// Bytes of a set of keys, at most: more than the largest issuers have.
const LARGEST_SET: usize = 1024 * 1024;

/// All of a configuration. Those that stay in it keep what was fetched.
#[derive(Clone, Default)]
pub(crate) struct KeyFetchers(HashMap<RemoteKeys, Arc<FetchedKeys>>);

impl KeyFetchers {
    /// Adds these keys, with what was known of them before.
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
    /// Ends with the fetch that is under way.
    under_way: Option<watch::Receiver<()>>,
    /// When the last one failed, if it did.
    failed: Option<Instant>,
}

impl FetchedKeys {
    fn new(model: &RemoteKeys) -> Self {
        Self { model: model.clone(), known: ArcSwapOption::empty(), attempts: Mutex::default() }
    }

    /// Whether one of them has signed the token.
    pub(super) fn verify(&self, token: &Token<'_>) -> Result<(), Problem> {
        match &*self.known.load() {
            Some(known) if self.may_be_used(known) => known.keys.verify(token),
            _ => Err(Problem::FetchFailed),
        }
    }

    /// Whether nothing needs to be done so that they are there.
    pub(super) fn is_fresh(&self) -> bool {
        self.known.load().as_ref().is_some_and(|known| self.is_young(known))
    }

    /// Sees to it that they are there, as far as that is possible. Who finds that they will be too old soon does not wait.
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
            // Nothing is ever sent: it ends.
            let _ = under_way.changed().await;
        }
    }

    /// A fifth of their time is for fetching them again.
    fn is_young(&self, known: &Known) -> bool {
        known.since.elapsed() < self.model.lifetime / 5 * 4
    }

    fn may_be_used(&self, known: &Known) -> bool {
        self.model.outlive || known.since.elapsed() < self.model.lifetime
    }

    /// The fetch that is under way, which is a new one unless one has failed just now.
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
                    tracing::info!(%uri, "the keys of tokens are fetched again");
                }
                self.known.store(Some(Arc::new(Known { keys, since: Instant::now() })));
            }
            Err(error) if failed_before => {
                tracing::debug!(%uri, error = error.text(), "the keys of tokens still cannot be fetched");
            }
            Err(error) => tracing::warn!(%uri, error = error.text(), "the keys of tokens cannot be fetched"),
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
            largest_answer: LARGEST_SET,
        };
        let ServiceAnswer { head, body, .. } =
            call.ask(|http2, scheme| question(&self.model.uri, http2, scheme)).await?;
        if head.status() != StatusCode::OK {
            return Err(CallError::Answer("it does not answer 200"));
        }
        KeySet::parse(&body).map_err(CallError::Answer)
    }
}

/// `GET` of the keys.
fn question(uri: &Uri, http2: bool, scheme: &str) -> Result<Request<RequestBody>, CallError> {
    let authority = uri.authority().map_or("", Authority::as_str);
    let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let mut request = Request::new(RequestBody::default());
    request.headers_mut().insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    direct(&mut request, http2.then_some(scheme), authority, path)
        .ok_or(CallError::Answer("it cannot be asked for this URI"))?;
    Ok(request)
}
