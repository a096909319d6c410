//! Writes the vector kernels as assembly text, which `src/x86_64/` includes with `global_asm!`.

use std::path::Path;
use std::{env, fs};

#[path = "codegen/asm.rs"]
mod asm;
#[path = "codegen/ifma.rs"]
mod ifma;

fn main() {
    println!("cargo::rerun-if-changed=codegen");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        return;
    }
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let ifma = [
        ifma::kernels("quadrille_ifma20", 20),
        ifma::kernels("quadrille_ifma10", 10),
        ifma::support("quadrille_ifma"),
    ];
    fs::write(Path::new(&out).join("ifma.s"), ifma.concat()).expect("OUT_DIR is writable");
}
