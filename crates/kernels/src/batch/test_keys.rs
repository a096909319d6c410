//! Keys for tests inside the crate.

use crate::key::PrivateKey;
use quadrille_rsa_numbers::{Components, KeySize};

/// Returns the keys of one size in `tests/support/keys.txt`.
pub(crate) fn test_keys(size: KeySize) -> Vec<PrivateKey> {
    let text = include_str!("../../tests/support/keys.txt");
    let blocks = text.split("\n\n").filter(|block| block.contains("n = "));
    let key = |block: &str| -> Option<PrivateKey> {
        let field = |name: &str| {
            let line = block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            let hex = line.expect("a key has all fields").as_bytes();
            let digit = |c: &u8| char::from(*c).to_digit(16).expect("hexadecimal") as u8;
            hex.chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect::<Vec<u8>>()
        };
        let [n, e, p, q, dp, dq, qinv] = ["n", "e", "p", "q", "dp", "dq", "qinv"].map(field);
        if n.len() != size.bytes() {
            return None; // importing a key takes a second of an emulated CPU
        }
        let components = Components { n: &n, e: &e, p: &p, q: &q, dp: &dp, dq: &dq, qinv: &qinv };
        Some(PrivateKey::new(&components).expect("a test key is valid"))
    };
    blocks.filter_map(key).collect()
}
