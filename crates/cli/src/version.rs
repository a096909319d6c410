//! Output of `quadrille --version`: the build, and the lanes that this CPU supports.

use quadrille_engine::Ceiling;
use std::sync::LazyLock;

/// The line for `-V`.
pub(crate) const SHORT: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("QUADRILLE_COMMIT"), ")");

/// The text for `--version`.
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
        ("portable", _) => "none (no AVX-512 IFMA or AVX2): one operation at a time".to_owned(),
        (name, width) => format!("{name}, {width} RSA operations at once"),
    }
}
