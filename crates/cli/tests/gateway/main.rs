//! The real binary, driven by real clients: curl, openssl s_client, nginx, Chromium.

mod smoke;
mod support;
