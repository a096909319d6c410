//! A program that does what servers do not: loads the module twice, uses it from many threads, forks meanwhile,
//! unloads it. Also under valgrind.

use crate::support::{Site, finish, said};
use std::path::absolute;

/// Compiles `NAME.c` of this folder.
pub(crate) fn compiled(site: &Site, name: &str) -> String {
    let source = absolute(format!("tests/provider/{name}.c")).expect("a path");
    let mut compiler = site.plain("cc");
    compiler.args(["-O1", "-g", "-Wall", "-Werror", "-o", name]).arg(source).args(["-lcrypto", "-pthread"]);
    finish(&mut compiler);
    site.path_text(name)
}

fn site() -> Site {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    site
}

#[test]
fn loaded_twice_threaded_forked_and_unloaded() {
    let site = site();
    let program = compiled(&site, "program");
    let mut command = site.plain("timeout");
    command.args(["600", &program, "8", "20"]).arg(site.path("openssl.cnf")).arg(site.path("rsa.key"));
    let said = said(&finish(&mut command));
    assert!(said.contains("all good"), "{said}");
}

#[test]
fn valgrind_finds_nothing() {
    let site = site();
    let program = compiled(&site, "program");
    // Debian 12's valgrind cannot read Rust's debug information.
    finish(site.plain("strip").args(["--strip-debug", "-o", "stripped.so"]).arg(crate::support::module()));
    let configuration = site.read("openssl.cnf");
    let module = crate::support::module().display().to_string();
    site.write("openssl.cnf", &configuration.replace(&module, &site.path_text("stripped.so")));
    let mut command = site.plain("timeout");
    // Valgrind does not support AVX-512; the portable tier is BoringSSL's.
    command.env("QUADRILLE_CPU", "portable").args([
        "1100",
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
    ]);
    command.args(["--show-leak-kinds=definite", "--errors-for-leak-kinds=definite", &program, "2", "2"]);
    command.arg(site.path("openssl.cnf")).arg(site.path("rsa.key"));
    let said = said(&finish(&mut command));
    assert!(said.contains("all good"), "{said}");
}
