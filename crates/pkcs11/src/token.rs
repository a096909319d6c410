//! A token, which its keys share: access to it, and its threads.

use crate::{
    TokenError, TokenObject,
    connection::{Access, Connection, Failure, Open, Unusable},
    objects,
    pool::{Cause, Pool, Ran, Refused, Work},
};
use quadrille_config::model::{Pkcs11Key, Pkcs11Token};
use std::{
    sync::{Arc, Mutex, PoisonError, Weak, mpsc},
    time::Duration,
};

/// A token of this process.
pub(crate) struct Token {
    pub(crate) access: Arc<Access>,
    pool: Pool<Connection>,
}

/// Least time for finding keys: the first login may take long.
const LEAST_LOOKUP: Duration = Duration::from_secs(10);

/// Returns the private keys of a token that match the URI, with their public halves where the token has them.
///
/// # Errors
/// If the token cannot be used.
pub fn list(key: &Pkcs11Key) -> Result<Vec<TokenObject>, TokenError> {
    let wanted = key.clone();
    Token::of(&key.token).call(move |open| objects::list(&open.session, &wanted))
}

impl Token {
    /// Returns the token with these settings; it ends with its last user.
    pub(crate) fn of(settings: &Pkcs11Token) -> Arc<Self> {
        static TOKENS: Mutex<Vec<Weak<Token>>> = Mutex::new(Vec::new());
        let mut tokens = TOKENS.lock().unwrap_or_else(PoisonError::into_inner);
        tokens.retain(|token| token.strong_count() > 0);
        let mut known = tokens.iter().filter_map(Weak::upgrade);
        if let Some(token) = known.find(|token| token.access.settings == *settings) {
            return token;
        }
        let new = Arc::new(Self::new(settings.clone()));
        tokens.push(Arc::downgrade(&new));
        new
    }

    fn new(settings: Pkcs11Token) -> Self {
        let access = Access::new(settings);
        let (of, observed) = (Arc::clone(&access), Arc::clone(&access));
        let make = Box::new(move || Connection::new(&of));
        let observe = Box::new(move |hangs| observed.observe(hangs));
        Self { pool: Pool::new("pkcs11".to_owned(), Arc::clone(&access.sessions), make, observe), access }
    }

    /// Submits an operation, which fails unless it completes within the token's timeout.
    pub(crate) fn submit(&self, work: Arc<dyn Work<Connection>>) -> Result<(), Refused> {
        self.pool.submit(work, self.access.settings.timeout)
    }

    /// Performs an action in a session, and waits for it.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        action: impl Fn(&mut Open) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, TokenError> {
        let (sender, receiver) = mpsc::channel();
        let call = Arc::new(Call { action, result: Mutex::new(Some(sender)) });
        match self.pool.submit(call, self.access.settings.timeout.max(LEAST_LOOKUP)) {
            Ok(()) => receiver.recv().unwrap_or(Err(TokenError::Timeout)),
            Err(Refused::Full) => Err(TokenError::Full),
            Err(Refused::Hanging) => Err(TokenError::Timeout),
        }
    }
}

/// Action that a thread waits for.
struct Call<T, F> {
    action: F,
    result: Mutex<Option<mpsc::Sender<Result<T, TokenError>>>>,
}

impl<T, F> Call<T, F> {
    fn end(&self, result: Result<T, TokenError>) {
        let sender = self.result.lock().unwrap_or_else(PoisonError::into_inner).take();
        let _ = sender.map(|sender| sender.send(result));
    }

    fn has_ended(&self) -> bool {
        self.result.lock().unwrap_or_else(PoisonError::into_inner).is_none()
    }
}

impl<T: Send, F: Fn(&mut Open) -> Result<T, Failure> + Send + Sync> Work<Connection> for Call<T, F> {
    fn run(&self, connection: &mut Connection) -> Ran {
        if self.has_ended() {
            return Ran::Done;
        }
        match connection.with(&self.action) {
            Ok(value) => self.end(Ok(value)),
            Err(Unusable::NoRoom) => return Ran::NoRoom,
            Err(Unusable::Failed(error)) => self.end(Err(error)),
        }
        Ran::Done
    }

    fn fail(&self, cause: Cause) {
        self.end(Err(match cause {
            Cause::Deadline => TokenError::Timeout,
            Cause::NoRoom => TokenError::Full,
            Cause::Panic => TokenError::Failed("internal error".to_owned()),
        }));
    }

    fn is_over(&self) -> bool {
        self.has_ended()
    }
}
