//! The PHP extension: classes of the namespace `Quadrille` over `quadrille-field`.
//!
//! The classes and methods are described in `packages/php/stubs/quadrille.php`. Constraints on Rust code inside PHP:
//!
//! - When memory runs out, PHP jumps over Rust frames with `longjmp`. So no value that needs dropping is held while
//!   PHP allocates: results are written straight into PHP's strings ([`strings`]), and keys are in objects that PHP
//!   frees.
//! - php-fpm forks workers from a process that has loaded this module. No random bytes are drawn while loading, and
//!   the pool of nonces does not survive a fork (`quadrille_field`).
//! - A key ring is parsed and its keys derived once for each process, not for each page ([`cache`]).

#![allow(
    missing_docs,
    reason = "a function that `php_module` generates; the PHP interface is described in the stubs"
)]

mod cache;
mod exceptions;
mod field;
mod info;
mod key_ring;
mod legacy;
mod sensitive;
mod strings;

use ext_php_rs::prelude::*;

/// Describes the extension to PHP.
#[php_module]
pub fn get_module(module: ModuleBuilder<'_>) -> ModuleBuilder<'_> {
    module
        .name("quadrille")
        .class::<key_ring::KeyRing>()
        .class::<field::Field>()
        .class::<legacy::Legacy>()
        .startup_function(exceptions::register)
        .request_startup_function(sensitive::mark_parameters)
        .info_function(info::print)
}
