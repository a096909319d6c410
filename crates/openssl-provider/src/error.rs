//! Errors, and how they are added to OpenSSL's error queue.

use crate::{abi::ReasonText, host};
use quadrille_engine::{ExchangeError, OperationError};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A failed operation: a reason of the table below, with details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) reason: Reason,
    pub(crate) detail: String,
}

/// Error reasons. Their numbers are part of the module's interface: only append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Reason {
    /// Reason of a negative result, which is not added to the queue.
    Quiet = 0,
    Internal = 1,
    NotInitialised = 2,
    MissingKey = 3,
    NoPrivateKey = 4,
    UnsupportedKey = 5,
    UnsupportedDigest = 6,
    UnsupportedParameter = 7,
    WrongInput = 8,
    BufferTooSmall = 9,
    BadUri = 10,
    CannotReadFile = 11,
    KeyServer = 12,
    OperationFailed = 13,
    QueueFull = 14,
    BadConfiguration = 15,
    PrivateKeyStays = 16,
}

macro_rules! reasons {
    ($($reason:ident: $text:literal),* $(,)?) => {
        [$(ReasonText { reason: Reason::$reason as usize, text: $text.as_ptr() },)* ReasonText { reason: 0, text: std::ptr::null() }]
    };
}

/// Texts that `ERR_print_errors` shows.
pub(crate) static REASONS: [ReasonText; 17] = reasons![
    Internal: c"internal error of the quadrille provider",
    NotInitialised: c"the operation has not been initialised",
    MissingKey: c"no key is set",
    NoPrivateKey: c"the private key is not available",
    UnsupportedKey: c"keys of this kind are not supported",
    UnsupportedDigest: c"this digest is not supported",
    UnsupportedParameter: c"this setting is not supported",
    WrongInput: c"the input does not fit the key or the padding",
    BufferTooSmall: c"the output buffer is too small",
    BadUri: c"not a key's URI",
    CannotReadFile: c"cannot read the file",
    KeyServer: c"the key server did not perform the operation",
    OperationFailed: c"the private-key operation failed",
    QueueFull: c"too many private-key operations are pending",
    BadConfiguration: c"invalid setting in the provider's section of openssl.cnf",
    PrivateKeyStays: c"private keys are not exported by the quadrille provider",
];

impl Failure {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self { reason, detail: detail.into() }
    }

    /// A negative result that is not an error.
    pub(crate) fn quiet() -> Self {
        Reason::Quiet.into()
    }

    /// Adds the failure to OpenSSL's error queue. Reason and detail are worded to be read alone or together, because
    /// some servers print only one of them.
    fn raise(&self) {
        if let Some(core) = host::current().filter(|_| self.reason != Reason::Quiet) {
            core.raise(self.reason as u32, &self.detail);
        }
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::new(reason, "")
    }
}

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        let reason = match error {
            OperationError::QueueFull => Reason::QueueFull,
            OperationError::WrongKeyType | OperationError::InvalidInput => Reason::WrongInput,
            OperationError::Stopped | OperationError::Failed => Reason::OperationFailed,
        };
        Self::new(reason, error.to_string())
    }
}

impl From<ExchangeError> for Failure {
    fn from(error: ExchangeError) -> Self {
        let reason = match error {
            ExchangeError::InvalidShare => Reason::WrongInput,
            ExchangeError::Declined | ExchangeError::Failed => Reason::OperationFailed,
        };
        Self::new(reason, error.to_string())
    }
}

/// BoringSSL's errors are meaningless to OpenSSL and stay out of its queue; BoringSSL's own queue is cleared.
impl From<boring::error::ErrorStack> for Failure {
    fn from(errors: boring::error::ErrorStack) -> Self {
        Self::new(Reason::Internal, errors.to_string())
    }
}

/// Boundary of every function called by OpenSSL: a failure or a panic is added to the error queue, and 0 is returned.
pub(crate) fn guard(what: impl FnOnce() -> Result<(), Failure>) -> i32 {
    i32::from(guard_value(what).is_some())
}

/// Like [`guard`], for a function that returns a value.
pub(crate) fn guard_value<T>(what: impl FnOnce() -> Result<T, Failure>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(what)).unwrap_or_else(|_| {
        Err(Failure::new(Reason::Internal, "a panic was caught at the provider's boundary"))
    });
    // Errors inside are reported as failures; BoringSSL's own queue must not grow.
    drop(boring::error::ErrorStack::get());
    match result {
        Ok(value) => Some(value),
        Err(failure) => {
            let _ = catch_unwind(AssertUnwindSafe(|| failure.raise()));
            None
        }
    }
}

/// Like [`guard`], for a function that returns a pointer.
pub(crate) fn guard_pointer<T>(what: impl FnOnce() -> Result<*mut T, Failure>) -> *mut T {
    guard_value(what).unwrap_or(std::ptr::null_mut())
}
