//! The lines of phpinfo().

use crate::cache;
use ext_php_rs::{info_table_end, info_table_row, info_table_start, zend::ModuleEntry};
use quadrille_field::xaes::Implementation;

/// Prints the version, the AES implementation and the keys held by this process, never their values.
pub(crate) extern "C" fn print(_module: *mut ModuleEntry) {
    info_table_start!();
    info_table_row!("Quadrille encrypted fields", env!("CARGO_PKG_VERSION"));
    info_table_row!("AES in use", Implementation::best().to_string());
    let loaded = cache::loaded();
    if loaded.is_empty() {
        info_table_row!("Keys loaded in this process", "none");
    }
    for file in loaded {
        info_table_row!("Keys loaded in this process", file);
    }
    info_table_end!();
}
