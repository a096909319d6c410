//! A thread's session with a token: opened and logged in at the first operation, and again after it was lost.

use crate::{
    TokenError,
    error::{Loss, loss},
    metrics,
    module::Module,
};
use cryptoki::{
    context::Pkcs11,
    error::Error,
    object::ObjectHandle,
    session::Session,
    slot::{Limit, Slot, TokenInfo},
};
use quadrille_config::model::Pkcs11Token;
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Pause after a failure to reach the token, in which other operations fail at once.
const PAUSE: Duration = Duration::from_millis(250);

/// Interval between reports of failed operations.
const REPORTED_EVERY: Duration = Duration::from_secs(10);

/// Access of all threads to one token.
pub(crate) struct Access {
    pub(crate) settings: Pkcs11Token,
    /// Name of the token in logs and metrics.
    pub(crate) name: String,
    module: Arc<Module>,
    failure: Mutex<Option<(Instant, TokenError)>>,
    reported: Mutex<Option<Instant>>,
    /// Number of sessions that the token allows.
    pub(crate) sessions: Arc<AtomicUsize>,
}

/// Session of one thread.
pub(crate) struct Connection {
    access: Arc<Access>,
    open: Option<Open>,
}

/// An open session, with the handles of keys found in it.
pub(crate) struct Open {
    pub(crate) session: Session,
    pub(crate) handles: HashMap<usize, ObjectHandle>,
}

/// Reason for which a thread did not perform an operation.
pub(crate) enum Unusable {
    /// The token has no room for this thread's session.
    NoRoom,
    /// The token cannot be used.
    Failed(TokenError),
}

impl From<TokenError> for Unusable {
    fn from(error: TokenError) -> Self {
        Self::Failed(error)
    }
}

impl Access {
    pub(crate) fn new(settings: Pkcs11Token) -> Arc<Self> {
        let label = settings.label.clone().or_else(|| settings.serial.clone());
        let name = label.or_else(|| settings.slot.map(|slot| slot.to_string())).unwrap_or_default();
        let module = Module::of(&settings.module);
        let sessions = Arc::new(AtomicUsize::new(settings.sessions.get()));
        Arc::new(Self {
            settings,
            name,
            module,
            failure: Mutex::default(),
            reported: Mutex::default(),
            sessions,
        })
    }

    /// Opens a session and logs in. After a failure, fails for a while without another attempt.
    fn open(&self) -> Result<Open, Unusable> {
        if let Some((since, error)) = &*self.failure()
            && since.elapsed() < PAUSE
        {
            return Err(error.clone().into());
        }
        let opened = self.try_open();
        match &opened {
            Ok(_) => self.recovered(),
            Err(Unusable::Failed(error)) => self.failed(error),
            Err(Unusable::NoRoom) => {}
        }
        opened
    }

    fn try_open(&self) -> Result<Open, Unusable> {
        let context = self.module.context()?;
        let (slot, info) = self.find(&context)?;
        if let Limit::Max(most) = info.max_session_count() {
            let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
            self.sessions.fetch_min(most, Ordering::Relaxed);
        }
        // Closed explicitly: after the token was removed, the handle may belong to another thread's session.
        let session = context.open_ro_session_no_drop(slot).map_err(|error| match loss(&error) {
            Loss::Room => Unusable::NoRoom,
            _ => Unusable::Failed(error.into()),
        })?;
        match self.module.logins.login(&session, &info, self.settings.pin.as_ref()) {
            Ok(()) => Ok(Open { session, handles: HashMap::new() }),
            Err(error) => {
                let _ = session.close();
                Err(error.into())
            }
        }
    }

    /// Finds the slot of the token, whose number may change when it is inserted again. Another slot's failure does not
    /// matter if the token is found.
    fn find(&self, context: &Pkcs11) -> Result<(Slot, TokenInfo), TokenError> {
        let (mut found, mut failure) = (None, None);
        for slot in context.get_slots_with_token()? {
            let info = match context.get_token_info(slot) {
                Ok(info) => info,
                // Removed meanwhile.
                Err(error) if loss(&error) == Loss::Session => continue,
                Err(error) => {
                    failure = Some(error);
                    continue;
                }
            };
            if info.token_initialized() && is_wanted(&self.settings, slot, &info) {
                if found.is_some() {
                    return Err(TokenError::Ambiguous(self.settings.to_string()));
                }
                found = Some((slot, info));
            }
        }
        let absent =
            || failure.map_or_else(|| TokenError::Absent(self.settings.to_string()), TokenError::from);
        found.ok_or_else(absent)
    }

    fn recovered(&self) {
        metrics::up(&self.name, true);
        if self.failure().take().is_some() {
            tracing::info!(token = self.name, "PKCS#11 token is available again");
        }
    }

    /// Records a failure; only the first one of a kind is logged.
    pub(crate) fn failed(&self, error: &TokenError) {
        metrics::up(&self.name, false);
        let before = self.failure().replace((Instant::now(), error.clone()));
        if before.is_none_or(|(_, before)| before != *error) {
            tracing::error!(token = self.name, %error, "PKCS#11 token is not available");
        }
    }

    /// Logs the failure of an operation, unless the state of the token explains it; at most one in ten seconds.
    pub(crate) fn report(&self, error: &TokenError) {
        if self.failure().as_ref().is_some_and(|(_, known)| known == error) {
            return;
        }
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.is_none_or(|last| last.elapsed() >= REPORTED_EVERY) {
            *reported = Some(Instant::now());
            tracing::error!(token = self.name, %error, "operation of a PKCS#11 token failed");
        }
    }

    /// Records that the token hangs, or that it responds again.
    pub(crate) fn observe(&self, hangs: bool) {
        metrics::up(&self.name, !hangs);
        if hangs {
            let error = TokenError::Timeout;
            tracing::error!(token = self.name, %error, "PKCS#11 token hangs; its operations fail at once");
        } else {
            tracing::info!(token = self.name, "PKCS#11 token responds again");
        }
    }

    fn failure(&self) -> std::sync::MutexGuard<'_, Option<(Instant, TokenError)>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_wanted(wanted: &Pkcs11Token, slot: Slot, info: &TokenInfo) -> bool {
    let same = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
    same(&wanted.label, info.label())
        && same(&wanted.serial, info.serial_number())
        && same(&wanted.manufacturer, info.manufacturer_id())
        && same(&wanted.model, info.model())
        && wanted.slot.is_none_or(|wanted| wanted == slot.id())
}

impl Connection {
    pub(crate) fn new(access: &Arc<Access>) -> Self {
        Self { access: Arc::clone(access), open: None }
    }

    /// Performs an action in the session. If the session or the login was lost, opens a new one and tries once more.
    pub(crate) fn with<T>(
        &mut self,
        action: impl Fn(&mut Open) -> Result<T, Failure>,
    ) -> Result<T, Unusable> {
        let mut again = true;
        loop {
            let open = match &mut self.open {
                Some(open) => open,
                none => none.insert(self.access.open()?),
            };
            let error = match action(open) {
                Ok(value) => return Ok(value),
                Err(Failure::Token(error)) => return Err(error.into()),
                Err(Failure::Library(error)) => error,
            };
            match loss(&error) {
                Loss::Nothing | Loss::Room => return Err(TokenError::from(error).into()),
                lost => self.lose(lost),
            }
            if !std::mem::take(&mut again) {
                return Err(TokenError::from(error).into());
            }
        }
    }

    fn lose(&mut self, lost: Loss) {
        if let Some(open) = self.open.take()
            && lost == Loss::Login
        {
            let _ = open.session.close();
        }
    }
}

/// Failure of an action in a session.
pub(crate) enum Failure {
    /// The library has returned an error, after which the session may be lost.
    Library(Error),
    /// The key cannot be used.
    Token(TokenError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Library(error)
    }
}

impl From<TokenError> for Failure {
    fn from(error: TokenError) -> Self {
        Self::Token(error)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.lose(Loss::Login);
    }
}
