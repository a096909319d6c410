//! Login with one attempt for each PIN. Tokens lock themselves after a few wrong ones, which a service that tries again
//! would cause within a second.

use crate::{TokenError, error::name, pin};
use cryptoki::{
    error::{Error, RvError},
    session::{Session, UserType},
    slot::TokenInfo,
    types::RawAuthPin,
};
use quadrille_config::model::PinSource;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};
use zeroize::Zeroizing;

/// Rejected PINs of the tokens of one library.
#[derive(Default)]
pub(crate) struct Logins(Mutex<HashMap<String, Arc<Mutex<Rejected>>>>);

/// The PIN that a token has rejected last.
type Rejected = Option<(Zeroizing<Vec<u8>>, String)>;

impl Logins {
    /// Logs in, unless the token requires no login. The login applies to all sessions of this process with the token.
    pub(crate) fn login(
        &self,
        session: &Session,
        info: &TokenInfo,
        source: Option<&PinSource>,
    ) -> Result<(), TokenError> {
        if !info.login_required() {
            return Ok(());
        }
        let pin = pin::read(source.ok_or(TokenError::PinMissing)?)?;
        // Only attempts for the same token wait for each other.
        let rejected = self.rejected(info);
        let mut rejected = rejected.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reason)) = rejected.as_ref().filter(|(before, _)| *before == pin) {
            return Err(TokenError::PinRejected(reason.clone()));
        }
        refuse_last_attempt(info)?;
        match session.login_with_raw(UserType::User, &RawAuthPin::new(Box::new(pin.to_vec()))) {
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => {
                *rejected = None;
                Ok(())
            }
            Err(error) if is_about_pin(&error) => {
                let reason = name(&error);
                *rejected = Some((pin, reason.clone()));
                Err(TokenError::PinRejected(reason))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn rejected(&self, info: &TokenInfo) -> Arc<Mutex<Rejected>> {
        let token = format!("{}\n{}\n{}", info.manufacturer_id(), info.serial_number(), info.label());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(token).or_default())
    }
}

fn refuse_last_attempt(info: &TokenInfo) -> Result<(), TokenError> {
    if info.user_pin_locked() {
        return Err(TokenError::PinAtRisk("the token is locked"));
    }
    if info.user_pin_final_try() {
        return Err(TokenError::PinAtRisk("one more wrong PIN would lock the token"));
    }
    Ok(())
}

fn is_about_pin(error: &Error) -> bool {
    use RvError as E;
    matches!(
        error,
        Error::Pkcs11(
            E::PinIncorrect
                | E::PinInvalid
                | E::PinLenRange
                | E::PinExpired
                | E::PinLocked
                | E::UserPinNotInitialized,
            _
        )
    )
}
