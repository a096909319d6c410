//! Parameters of a signature that can be set and queried.

use super::algorithm_id;
use crate::{
    abi::{PARAM_BYTES, PARAM_INTEGER, PARAM_TEXT, Param},
    digest::Digest,
    error::{Failure, Reason},
    key::ProviderKey,
    params::{Answer, Params, Value, described, end},
    rsa::signature::{Padding, Salt},
};
use std::ffi::{CStr, CString, c_void};

/// Padding and digest.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) digest: Option<Digest>,
    mode: Mode,
    mgf1: Option<Digest>,
    salt: Salt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Pkcs1,
    Pss,
    None,
}

impl Default for Settings {
    fn default() -> Self {
        Self { digest: None, mode: Mode::Pkcs1, mgf1: None, salt: Salt::Auto }
    }
}

/// Padding modes, with their numbers in rsa.h and their names.
const MODES: [(Mode, i64, &CStr); 3] =
    [(Mode::Pkcs1, 1, c"pkcs1"), (Mode::None, 3, c"none"), (Mode::Pss, 6, c"pss")];

const SALTS: [(Salt, i64, &CStr); 4] = [
    (Salt::Digest, -1, c"digest"),
    (Salt::Auto, -2, c"auto"),
    (Salt::Max, -3, c"max"),
    (Salt::AutoDigestMax, -4, c"auto-digestmax"),
];

impl Settings {
    pub(super) fn padding(&self) -> Padding {
        match self.mode {
            Mode::Pkcs1 => Padding::Pkcs1,
            Mode::None => Padding::None,
            Mode::Pss => Padding::Pss { mgf1: self.mgf1, salt: self.salt },
        }
    }

    pub(super) fn set(&mut self, params: Params<'_>) -> Result<(), Failure> {
        for value in params.iter() {
            if value.is_named(c"digest") {
                self.digest = Some(Digest::of_value(value)?);
            } else if value.is_named(c"pad-mode") {
                self.mode = mode(value)?;
            } else if value.is_named(c"saltlen") {
                self.salt = salt(value)?;
            } else if value.is_named(c"mgf1-digest") {
                self.mgf1 = Some(Digest::of_value(value)?);
            }
        }
        Ok(())
    }

    pub(super) fn answer(&self, key: Option<&ProviderKey>, params: Params<'_>) -> Result<(), Failure> {
        let digest = self.digest.map_or(c"", Digest::name);
        let mgf1 = self.mgf1.map_or(digest, Digest::name);
        let (number, name) = MODES
            .iter()
            .find(|(mode, ..)| *mode == self.mode)
            .map_or((1, c"pkcs1"), |(_, number, name)| (*number, *name));
        let salt = match self.salt {
            Salt::Length(length) => CString::new(length.to_string()).unwrap_or_default(),
            other => SALTS.iter().find(|(salt, ..)| *salt == other).map_or(c"", |(.., name)| name).to_owned(),
        };
        let mut fits = params.answer(c"digest", Answer::Text(digest))
            && params.answer(c"mgf1-digest", Answer::Text(mgf1))
            && params.answer(c"saltlen", Answer::Text(&salt));
        let as_number = usize::try_from(number).map_or(Answer::Text(name), Answer::Number);
        fits &= params.answer(c"pad-mode", as_number) || params.answer(c"pad-mode", Answer::Text(name));
        if params.get(c"algorithm-id").is_some() {
            let key = key.ok_or(Reason::NotInitialised)?;
            let encoded = algorithm_id::encode(key.public(), self.padding(), self.digest)?;
            fits &= params.answer(c"algorithm-id", Answer::Bytes(&encoded));
        }
        fits.then_some(()).ok_or_else(|| Reason::BufferTooSmall.into())
    }
}

fn mode(value: Value<'_>) -> Result<Mode, Failure> {
    value.among(&MODES).ok_or_else(|| {
        Failure::new(
            Reason::UnsupportedParameter,
            "this padding of RSA signatures; supported: pkcs1, pss and none",
        )
    })
}

fn salt(value: Value<'_>) -> Result<Salt, Failure> {
    if let Some(salt) = value.among(&SALTS) {
        return Ok(salt);
    }
    let number = value.signed().and_then(|number| usize::try_from(number).ok());
    let length = number.or_else(|| value.text()?.parse().ok());
    length.map(Salt::Length).ok_or_else(|| Failure::new(Reason::UnsupportedParameter, "this salt length"))
}

static SETTABLE: [Param; 6] = [
    described(c"digest", PARAM_TEXT),
    described(c"properties", PARAM_TEXT),
    described(c"pad-mode", PARAM_TEXT),
    described(c"saltlen", PARAM_TEXT),
    described(c"mgf1-digest", PARAM_TEXT),
    end(),
];

static GETTABLE: [Param; 6] = [
    described(c"algorithm-id", PARAM_BYTES),
    described(c"digest", PARAM_TEXT),
    described(c"pad-mode", PARAM_INTEGER),
    described(c"saltlen", PARAM_TEXT),
    described(c"mgf1-digest", PARAM_TEXT),
    end(),
];

pub(super) unsafe extern "C" fn settable(_context: *mut c_void, _provider: *mut c_void) -> *const Param {
    SETTABLE.as_ptr()
}

pub(super) unsafe extern "C" fn gettable(_context: *mut c_void, _provider: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}
