//! Field encryption from outside: envelopes, key rings, blind indexes, the older form.

mod envelopes;
mod files;
mod legacy;
mod mcrypt;
mod rings;
mod text;
