//! The client on AWS-LC's own TLS library.

use crate::{Outcome, client::REQUEST};
use aws_lc_sys as ffi;
use std::{
    ffi::{CStr, CString, c_char},
    net::{Ipv4Addr, TcpStream},
    os::fd::AsRawFd,
    ptr,
};

/// Visits each port, with AWS-LC's defaults, and prints a line about it.
pub(crate) fn fetch(ca: &str, ports: &[&str]) -> Outcome<()> {
    let ca = CString::new(ca)?;
    // SAFETY: the context is new, and is never freed; the path is a C string.
    let context = unsafe {
        let context = ffi::SSL_CTX_new(ffi::TLS_method());
        ffi::SSL_CTX_set_verify(context, ffi::SSL_VERIFY_PEER, None);
        if ffi::SSL_CTX_load_verify_locations(context, ca.as_ptr(), ptr::null()) != 1 {
            return Err("cannot read the CA".into());
        }
        context
    };
    for port in ports {
        // SAFETY: the context is live.
        match unsafe { visit(context, port.parse()?) } {
            Ok(seen) => println!("{port} {seen}"),
            Err(error) => println!("{port} error: {error}"),
        }
    }
    Ok(())
}

/// # Safety
/// The context is live.
unsafe fn visit(context: *mut ffi::SSL_CTX, port: u16) -> Outcome<String> {
    let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    let name = c"localhost".as_ptr();
    let mut response = Vec::new();
    // SAFETY: the connection is new, and freed at the end; the socket outlives it; buffers have the lengths that are passed.
    let (signature, group) = unsafe {
        let ssl = ffi::SSL_new(context);
        let is_set = ffi::SSL_set_fd(ssl, socket.as_raw_fd()) == 1
            && ffi::SSL_set_tlsext_host_name(ssl, name) == 1
            && ffi::SSL_set1_host(ssl, name) == 1;
        if !is_set || ffi::SSL_connect(ssl) != 1 {
            return Err(format!("the handshake failed: {:#x}", ffi::ERR_get_error()).into());
        }
        let length = REQUEST.len().try_into()?;
        if ffi::SSL_write(ssl, REQUEST.as_ptr().cast(), length) != length {
            return Err("the request could not be sent".into());
        }
        let mut part = [0_u8; 4096];
        while let Ok(count @ 1..) = usize::try_from(ffi::SSL_read(ssl, part.as_mut_ptr().cast(), 4096)) {
            response.extend_from_slice(&part[..count]);
        }
        let signature = ffi::SSL_get_peer_signature_algorithm(ssl);
        let names = (
            text(ffi::SSL_get_signature_algorithm_name(signature, 1)),
            text(ffi::SSL_get_group_name(ffi::SSL_get_group_id(ssl))),
        );
        ffi::SSL_free(ssl);
        names
    };
    let response = String::from_utf8(response)?;
    let body = response.split_once("\r\n\r\n").ok_or("no response")?.1;
    Ok(format!("{signature} {group} {body}"))
}

/// # Safety
/// The pointer is null or a C string.
unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return "unknown".to_owned();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}
