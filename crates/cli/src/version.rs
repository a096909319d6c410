//! What `quadrille --version` says: enough to see which build runs, and what it gains on this CPU.

use quadrille_engine::Ceiling;
use std::sync::LazyLock;

/// A line for `-V`.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("QUADRILLE_COMMIT"), ")");

/// For `--version`, and in the log of a process that serves.
pub(crate) static LONG: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{SHORT}\nBoringSSL of boring-sys {}\nlanes of this CPU: {}",
        env!("QUADRILLE_BORING_SYS"),
        lanes()
    )
});

fn lanes() -> String {
    let ceiling = match Ceiling::from_environment() {
        Ok(ceiling) => ceiling,
        Err(error) => return error.to_string(),
    };
    match quadrille_engine::tier(ceiling) {
        ("portable", _) => "none (neither AVX-512 IFMA nor AVX2): one operation at a time".to_owned(),
        (name, width) => format!("{name}, {width} RSA operations at once"),
    }
}
