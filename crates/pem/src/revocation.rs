//! Certificate revocation lists (RFC 5280 section 5) of a PEM text.

use super::block::{Damage, blocks};
use boring::{
    error::ErrorStack,
    nid::Nid,
    x509::{X509NameRef, store::X509StoreBuilderRef},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

/// Label of a list (RFC 7468 section 6).
const LABEL: &str = "X509 CRL";

/// Certificate revocation lists, in DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationLists(Vec<Vec<u8>>);

impl RevocationLists {
    /// Reads the lists of a text. Blocks of other kinds are ignored; a text without lists is valid.
    ///
    /// # Errors
    /// If any block is damaged, or a list is not valid DER.
    pub fn read(text: &[u8]) -> Result<Self, Damage> {
        let mut lists = Vec::new();
        for block in blocks(text)?.into_iter().filter(|block| block.label == LABEL) {
            if parse(&block.contents).is_err() {
                return Err(Damage::new(block.line, "the certificate revocation list is not valid DER"));
            }
            lists.push(block.contents.to_vec());
        }
        Ok(Self(lists))
    }

    /// Returns whether there is no list.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the lists in DER.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter().map(Vec::as_slice)
    }

    /// Returns the common name of each list's issuer, and the Unix time of its next update, after which the
    /// certificates of this issuer are rejected. A list without such a time does not expire.
    pub fn next_updates(&self) -> Vec<(String, i64)> {
        self.iter().filter_map(|der| next_update(&parse(der).ok()?)).collect()
    }

    /// Adds the lists to a store: every certificate of a chain, except its trust anchor, is then checked against the
    /// list of its issuer, which must be there.
    ///
    /// # Errors
    /// If memory is exhausted.
    pub fn add_to(&self, store: &mut X509StoreBuilderRef) -> Result<(), ErrorStack> {
        for der in self.iter() {
            let list = parse(der)?;
            // SAFETY: the store and the list are live; the store counts its own reference.
            if unsafe { ffi::X509_STORE_add_crl(store.as_ptr(), list.0) } != 1 {
                return Err(ErrorStack::get());
            }
        }
        let flags = ffi::X509_V_FLAG_CRL_CHECK | ffi::X509_V_FLAG_CRL_CHECK_ALL;
        // SAFETY: the store is live.
        unsafe { ffi::X509_STORE_set_flags(store.as_ptr(), flags as _) };
        Ok(())
    }
}

/// A list of BoringSSL, freed when dropped.
struct List(*mut ffi::X509_CRL);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it was made by `parse`, and holds one reference.
        unsafe { ffi::X509_CRL_free(self.0) };
    }
}

fn next_update(list: &List) -> Option<(String, i64)> {
    // SAFETY: the list is live, and always has an issuer, which is read before the list is freed.
    let issuer = unsafe { X509NameRef::from_ptr(ffi::X509_CRL_get_issuer(list.0)) };
    let mut time = 0;
    // SAFETY: the list is live; its time may be missing, and is read only otherwise.
    let is_set = unsafe {
        let next = ffi::X509_CRL_get0_nextUpdate(list.0);
        !next.is_null() && ffi::ASN1_TIME_to_posix(next, &mut time) == 1
    };
    is_set.then(|| (common_name(issuer), time))
}

/// Returns the common name, or another part of a name without one.
pub fn common_name(name: &X509NameRef) -> String {
    let entry = name.entries_by_nid(Nid::COMMONNAME).next().or_else(|| name.entries().last());
    entry.and_then(|entry| Some(entry.data().as_utf8().ok()?.to_string())).unwrap_or_default()
}

fn parse(der: &[u8]) -> Result<List, ErrorStack> {
    let mut input = der.as_ptr();
    let length = std::ffi::c_long::try_from(der.len()).unwrap_or(0);
    // SAFETY: the input has this length, and is read only.
    let list = unsafe { ffi::d2i_X509_CRL(std::ptr::null_mut(), &mut input, length) };
    if list.is_null() { Err(ErrorStack::get()) } else { Ok(List(list)) }
}
