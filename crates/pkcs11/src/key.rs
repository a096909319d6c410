//! A key in a token, as the engine uses it.

use crate::{
    TokenError,
    connection::{Access, Connection, Failure, Open, Unusable},
    mechanism, metrics, objects,
    pool::{Cause, Ran, Refused, Work},
    token::Token,
};
use cryptoki::object::ObjectHandle;
use quadrille_config::model::{PinSource, Pkcs11Key, Source};
use quadrille_engine::{ExternalKey, ExternalOperation, Key, OperationError, PublicKey};
use std::{
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A key that was found in a token.
#[derive(Debug)]
pub struct Loaded {
    /// The key.
    pub key: Key,
    /// Warnings for the operator.
    pub warnings: Vec<String>,
}

/// Loads the key that the URI names. `public` is its public half, such as that of a certificate; without it, the token
/// must have it. With it, an absent token is a warning: the key can be used once the token is there.
///
/// # Errors
/// If the token or the key cannot be used.
pub fn load(key: &Pkcs11Key, public: Option<PublicKey>) -> Result<Loaded, TokenError> {
    let token = Token::of(&key.token);
    let mut warnings: Vec<String> = key.token.pin.as_ref().and_then(readable_by_all).into_iter().collect();
    let (named, wanted) = (key.clone(), public.clone());
    let found = token.call(move |open| objects::public_half(&open.session, &named, wanted.as_ref()));
    let public = match (found, public) {
        (Ok(found), _) => found,
        (Err(error), Some(public)) if error.is_transient() => {
            warnings.push(format!("{key}: {error}; its operations fail until then"));
            public
        }
        (Err(error), _) => return Err(error),
    };
    static NUMBERS: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
    let lookup = Arc::new(Lookup { number, key: key.clone() });
    Ok(Loaded { key: Key::external(public, Arc::new(TokenKey { token, lookup })), warnings })
}

fn readable_by_all(pin: &PinSource) -> Option<String> {
    let PinSource::File(Source::File(path)) = pin else { return None };
    let mode = std::fs::metadata(path).ok()?.permissions().mode();
    let warning =
        || format!("the PIN in {} is readable by all users of this machine; run: chmod 600", path.display());
    (mode & 0o004 != 0).then(warning)
}

/// Private half of a key in a token.
struct TokenKey {
    token: Arc<Token>,
    lookup: Arc<Lookup>,
}

/// Name of the key, and its number among the handles of a session.
struct Lookup {
    number: usize,
    key: Pkcs11Key,
}

impl Lookup {
    fn handle(&self, open: &mut Open, public: &PublicKey) -> Result<ObjectHandle, Failure> {
        if let Some(known) = open.handles.get(&self.number) {
            return Ok(*known);
        }
        let found = objects::find(&open.session, &self.key, Some(public))?;
        open.handles.insert(self.number, found);
        Ok(found)
    }
}

impl ExternalKey for TokenKey {
    fn backend(&self) -> &'static str {
        "pkcs11"
    }

    fn submit(&self, operation: Arc<dyn ExternalOperation>) -> Result<(), OperationError> {
        let access = Arc::clone(&self.token.access);
        let task = Arc::new(Task { operation, lookup: Arc::clone(&self.lookup), access });
        self.token.submit(task).map_err(|refused| {
            let (reason, error) = match refused {
                Refused::Full => ("full", OperationError::QueueFull),
                Refused::Hanging => ("hanging", OperationError::Failed),
            };
            metrics::failed(&self.token.access.name, reason);
            error
        })
    }
}

/// One operation in the token's threads.
struct Task {
    operation: Arc<dyn ExternalOperation>,
    lookup: Arc<Lookup>,
    access: Arc<Access>,
}

impl Task {
    fn end(&self, reason: &'static str) {
        metrics::failed(&self.access.name, reason);
        self.operation.finish(Err(OperationError::Failed));
    }
}

impl Work<Connection> for Task {
    fn run(&self, connection: &mut Connection) -> Ran {
        if !self.operation.begin() {
            return Ran::Done;
        }
        let (operation, public) = (self.operation.operation(), self.operation.public());
        let result = connection.with(|open| {
            let handle = self.lookup.handle(open, public)?;
            mechanism::compute(&open.session, handle, public, operation)
        });
        match result {
            Ok(bytes) => {
                if !self.operation.finish(Ok(bytes)) {
                    metrics::failed(&self.access.name, "wrong");
                    let reason = "its result does not verify with the public key";
                    self.access.report(&TokenError::Failed(reason.to_owned()));
                }
            }
            Err(Unusable::NoRoom) => return Ran::NoRoom,
            Err(Unusable::Failed(error)) => {
                self.access.report(&error);
                self.end("failed");
            }
        }
        Ran::Done
    }

    fn fail(&self, cause: Cause) {
        self.end(match cause {
            Cause::Deadline => "timeout",
            Cause::NoRoom => "full",
            Cause::Panic => "failed",
        });
    }

    fn is_over(&self) -> bool {
        self.operation.is_over()
    }
}
