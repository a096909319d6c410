//! Writes the vector kernels as assembly text, which `src/x86_64/` includes with `global_asm!`.

use std::path::Path;
use std::{env, fs};

#[path = "codegen/asm.rs"]
mod asm;
#[path = "codegen/fma47.rs"]
mod fma47;
#[path = "codegen/ifma.rs"]
mod ifma;
#[path = "codegen/p256.rs"]
mod p256;
#[path = "codegen/p256_multiple.rs"]
mod p256_multiple;
#[path = "codegen/p256_stream.rs"]
mod p256_stream;
#[path = "codegen/p256_table.rs"]
mod p256_table;
#[path = "codegen/x25519.rs"]
mod x25519;
#[path = "codegen/x25519_avx2.rs"]
mod x25519_avx2;
#[path = "codegen/x25519_avx2_field.rs"]
mod x25519_avx2_field;
#[path = "codegen/x25519_step.rs"]
mod x25519_step;
#[path = "codegen/x25519_stream.rs"]
mod x25519_stream;
#[path = "codegen/x25519_table.rs"]
mod x25519_table;

fn main() {
    println!("cargo::rerun-if-changed=codegen");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, parts: &[String]| {
        fs::write(Path::new(&out).join(name), parts.concat()).expect("OUT_DIR is writable");
    };
    let ifma = [(20, 20), (30, 10), (40, 20), (60, 20), (80, 20)]
        .map(|(limbs, tile)| ifma::kernels(&format!("quadrille_ifma_{limbs}"), limbs, tile));
    write("ifma.s", &[ifma.concat(), ifma::support("quadrille_ifma")]);
    let fma47 = [22, 34, 46, 70, 94].map(|limbs| fma47::kernels(&format!("quadrille_fma47_{limbs}"), limbs));
    write("fma47.s", &[fma47.concat(), fma47::support("quadrille_fma47")]);
    write("p256.s", &[p256::kernels(&p256_table::text())]);
    let table = x25519_table::Table::new();
    write("x25519.s", &[x25519::kernels(&table.for_eight_lanes())]);
    write("x25519_avx2.s", &[x25519_avx2::kernels(&table.for_four_lanes())]);
}
