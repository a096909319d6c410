//! The class `Quadrille\Legacy`.

use crate::{
    exceptions::field_error,
    strings::{PhpString, filled},
};
use ext_php_rs::{binary_slice::BinarySlice, flags::ClassFlags, prelude::*, zend::BailoutGuard};
use quadrille_field::Legacy as Older;
use zeroize::Zeroizing;

/// The older form of fields, to be read once more and replaced.
#[php_class]
#[php(name = "Quadrille\\Legacy")]
#[php(flags = ClassFlags::Final.union(ClassFlags::NotSerializable))]
pub struct Legacy(pub(crate) Older);

#[php_impl]
impl Legacy {
    /// Decrypts a field of the older form.
    pub fn decrypt(&self, field: BinarySlice<u8>) -> PhpResult<PhpString> {
        // Its length is known only afterwards, so Rust holds it briefly: erased even if memory runs out.
        let plain = BailoutGuard::new(Zeroizing::new(self.0.decrypt(&field).map_err(field_error)?));
        filled(plain.len(), |string| {
            string.copy_from_slice(&plain);
            Ok(())
        })
    }

    /// Encrypts a field in the older form, for software that cannot read envelopes yet.
    pub fn encrypt(&self, plain: BinarySlice<u8>) -> PhpResult<String> {
        self.0.encrypt(&plain).map_err(field_error)
    }
}
