//! HTTP Basic authentication (RFC 7617).
//!
//! Passwords are hashed on dedicated threads, because a hash takes as long as a hundred handshakes. A verified
//! password is kept for ten minutes as a keyed hash and is not hashed again until then. Wrong passwords are counted
//! per client network, so that guessing is slow and does not take the threads from other clients.

mod credentials;
mod guesses;
mod hashing;
mod users;

use crate::http::{
    error::refusal::Refusal,
    filter::{call::Call, per_route::PerRoute},
    request::{Request, user::User},
};
use credentials::Credentials;
use guesses::Guesses;
use hashing::Busy;
use http::{HeaderMap, HeaderValue, header};
use moka::sync::Cache;
use quadrille_config::{Diagnostic, model::BasicAuth};
use ring::hmac;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use users::Users;

/// Authenticators by their configuration.
pub(crate) type Authenticators = HashMap<Arc<BasicAuth>, Arc<Authenticator>>;

/// The access step: the users of the chain and of its routes.
pub(crate) struct Step(PerRoute<BasicAuth, Authenticator>);

/// The users of one setting, with a cache of verified credentials.
pub(crate) struct Authenticator {
    model: Arc<BasicAuth>,
    users: Arc<Users>,
    challenge: HeaderValue,
    /// Tags of credentials that were verified.
    verified: Cache<[u8; 32], ()>,
    guesses: Option<Guesses>,
}

/// Time until a verified password has to be hashed again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Maximum number of verified credentials in the cache.
const MOST_REMEMBERED: u64 = 10_000;

/// Key of the tags in the cache. Neither the memory of the cache nor the time of a lookup discloses a password.
static SECRET: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new()).ok());

impl Step {
    /// Creates a step. `all` includes the users of the chain.
    pub(crate) fn new(own: Option<&Arc<BasicAuth>>, all: &Authenticators) -> Self {
        let headers = all.keys().filter_map(|model| model.user_header.clone()).collect();
        let own = own.and_then(|own| all.get(own)).cloned();
        Self(PerRoute::new(own, all.clone(), headers, |route| &route.basic_auth))
    }

    /// Checks that a request comes from an authenticated user, and attaches the user to the request.
    ///
    /// # Errors
    /// Returns the response to the client otherwise.
    pub(crate) async fn check(&self, call: &mut Call<'_>) -> Result<(), Refusal> {
        self.0.remove_headers(call);
        if let Some(users) = self.0.of(call) {
            let user = Box::pin(users.authenticate(call.request())).await?;
            call.authenticated(user);
        }
        Ok(())
    }
}

impl Authenticator {
    /// Reads the user file.
    ///
    /// # Errors
    /// Names the first line that is not a user.
    pub(crate) fn new(model: &Arc<BasicAuth>) -> Result<Self, Diagnostic> {
        let users = Users::read(model)?;
        let realm = model.realm.replace('\\', "\\\\").replace('"', "\\\"");
        let challenge = HeaderValue::try_from(format!("Basic realm=\"{realm}\", charset=\"UTF-8\""));
        Ok(Self {
            users: Arc::new(users),
            challenge: challenge.unwrap_or(HeaderValue::from_static("Basic realm=\"\"")),
            verified: Cache::builder().max_capacity(MOST_REMEMBERED).time_to_live(REMEMBERED).build(),
            guesses: model.guesses.map(Guesses::new),
            model: Arc::clone(model),
        })
    }

    async fn authenticate(&self, request: &Request) -> Result<User, Refusal> {
        let Some(said) = Credentials::of(&request.headers) else {
            return Err(self.unauthorized(request, "no password"));
        };
        let tag = SECRET.as_ref().map(|key| said.tag(key));
        let known =
            tag.filter(|tag| self.verified.contains_key(tag)).and_then(|_| self.users.name(&said.user));
        if let Some(name) = known {
            return Ok(self.user(name));
        }
        let client = request.sender.client.ip();
        let guess = self.guesses.as_ref().map(|guesses| guesses.take(client, Instant::now())).transpose();
        let guess = guess.map_err(|wait| too_many(wait, request))?;
        let users = Arc::clone(&self.users);
        let verified = hashing::compute(move || users.verify(&said)).await.map_err(|Busy| busy(request))?;
        let Some(name) = verified else { return Err(self.unauthorized(request, "a wrong password")) };
        if let (Some(guesses), Some(guess)) = (&self.guesses, guess) {
            guesses.give_back(guess);
        }
        if let Some(tag) = tag {
            self.verified.insert(tag, ());
        }
        Ok(self.user(name))
    }

    fn user(&self, name: Arc<str>) -> User {
        let value = HeaderValue::from_bytes(name.as_bytes()).ok();
        User { header: self.model.user_header.clone().zip(value), forwards: self.model.forwards, name }
    }

    fn unauthorized(&self, request: &Request, reason: &'static str) -> Refusal {
        let challenge = HeaderMap::from_iter([(header::WWW_AUTHENTICATE, self.challenge.clone())]);
        Refusal::page(reason, 401, "", &request.headers).counted_as(PASSWORD).with_headers(challenge)
    }
}

fn too_many(wait: Duration, request: &Request) -> Refusal {
    let words = "Too many wrong passwords; try again later.\n";
    let page = Refusal::page("too many wrong passwords", 429, words, &request.headers);
    page.counted_as(PASSWORD).retry_after(wait)
}

fn busy(request: &Request) -> Refusal {
    let page = Refusal::page("password hashing is overloaded", 503, "", &request.headers);
    page.counted_as(PASSWORD).retry_after(Duration::from_secs(1))
}

/// Label of the metric of denied requests.
const PASSWORD: &str = "password";
