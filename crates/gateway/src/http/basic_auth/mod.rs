//! Who is let in by name and password (RFC 7617).
//!
//! A password is hashed by threads of its own, because that takes as long as a hundred handshakes, and once in ten minutes:
//! until then, what was verified is known by a keyed hash. Wrong passwords are counted for each network of clients, so that
//! whoever guesses neither gets far nor takes the threads from others.

mod credentials;
mod guesses;
mod hashing;
mod users;

use super::{
    header_spelling,
    refusal::{self, Refusal},
    request::Request,
    router::{RouteLookup, Router},
    user::User,
};
use credentials::Credentials;
use guesses::Guesses;
use hashing::Busy;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use moka::sync::Cache;
use quadrille_config::{
    Diagnostic,
    model::{BasicAuth, RouteBasicAuth},
};
use ring::hmac;
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use users::Users;

/// Users with what is known of them, by what the configuration says.
pub(crate) type Authenticators = HashMap<Arc<BasicAuth>, Arc<Authenticator>>;

/// Users of a chain, and of its routes.
pub(crate) struct Step {
    own: Option<Arc<Authenticator>>,
    all: Authenticators,
    /// That tell servers of users. Clients have no say in them.
    headers: Vec<HeaderName>,
}

/// The users of one setting, with what is known of their passwords.
pub(crate) struct Authenticator {
    model: Arc<BasicAuth>,
    users: Arc<Users>,
    challenge: HeaderValue,
    /// Of names and passwords that belong together.
    verified: Cache<[u8; 32], ()>,
    guesses: Option<Guesses>,
}

/// How long a password that was verified is not hashed again.
const REMEMBERED: Duration = Duration::from_secs(600);
/// For how many users at most.
const MOST_REMEMBERED: u64 = 10_000;

/// Of what is kept in memory: nobody finds out a password from there, nor by how long it is looked for.
static SECRET: LazyLock<Option<hmac::Key>> =
    LazyLock::new(|| hmac::Key::generate(hmac::HMAC_SHA256, &ring::rand::SystemRandom::new()).ok());

impl Step {
    /// `all` has the users of the chain, too.
    pub(super) fn new(own: Option<&Arc<BasicAuth>>, all: &Authenticators) -> Self {
        let headers = all.keys().filter_map(|model| model.user_header.clone()).collect();
        Self { own: own.and_then(|own| all.get(own)).cloned(), all: all.clone(), headers }
    }

    /// Whether a request comes from a user who may be let in. Who it is becomes part of it.
    ///
    /// # Errors
    /// Says how it is answered otherwise.
    pub(super) async fn check(
        &self,
        router: &Arc<Router>,
        tls: bool,
        request: &mut Request,
    ) -> Result<(), Refusal<'static>> {
        for name in &self.headers {
            header_spelling::remove(&mut request.headers, name);
        }
        let users = match router.find(&request.view(tls)) {
            None => self.own.as_ref(),
            // Nobody is asked for a password without TLS where the answer is to come with it.
            Some(RouteLookup::NeedsTls) => None,
            Some(RouteLookup::Route(matched)) => match &matched.route().basic_auth {
                RouteBasicAuth::OfChain => self.own.as_ref(),
                RouteBasicAuth::Off => None,
                RouteBasicAuth::InPlace(model) => self.all.get(model),
            },
        };
        if let Some(users) = users {
            request.user = Some(Box::pin(users.authenticate(request)).await?);
        }
        Ok(())
    }
}

impl Authenticator {
    /// Reads the users.
    ///
    /// # Errors
    /// Names the first line that is no user.
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

    async fn authenticate(&self, request: &Request) -> Result<User, Refusal<'static>> {
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

    fn unauthorized(&self, request: &Request, reason: &'static str) -> Refusal<'static> {
        let headers = HeaderMap::from_iter([(header::WWW_AUTHENTICATE, self.challenge.clone())]);
        denied(reason, refusal::page(401, "", headers, &request.headers))
    }
}

fn too_many(wait: Duration, request: &Request) -> Refusal<'static> {
    let headers = refusal::retry_after(wait);
    let page = refusal::page(429, "Too many wrong passwords; come back later.\n", headers, &request.headers);
    denied("too many wrong passwords", page)
}

fn busy(request: &Request) -> Refusal<'static> {
    let headers = refusal::retry_after(Duration::from_secs(1));
    denied("no thread for a password", refusal::page(503, "", headers, &request.headers))
}

fn denied(reason: &'static str, page: Refusal<'static>) -> Refusal<'static> {
    Refusal { reason, what: Some("password"), ..page }
}
