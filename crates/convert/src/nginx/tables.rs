//! Directives that need no conversion, and directives without an equivalent.

/// Directives without an effect on a gateway, or whose effect Quadrille always has.
const UNNEEDED: &str = "\
    absolute_redirect accept_mutex accept_mutex_delay aio aio_write brotli_buffers brotli_comp_level \
    brotli_window chunked_transfer_encoding client_body_buffer_size client_body_in_file_only \
    client_body_in_single_buffer client_body_temp_path client_header_buffer_size connection_pool_size \
    daemon debug_connection debug_points default_type directio directio_alignment env error_log etag \
    fastcgi_buffer_size fastcgi_buffers fastcgi_temp_path gzip_buffers gzip_comp_level gzip_disable \
    gzip_http_version gzip_proxied gzip_vary http2 http2_body_preread_size http2_chunk_size \
    http2_idle_timeout http2_max_concurrent_pushes http2_max_concurrent_streams http2_max_field_size \
    http2_max_header_size http2_max_requests http2_push_preload http2_recv_buffer_size \
    http2_recv_timeout http3 http3_hq http3_max_concurrent_streams http3_stream_buffer_size \
    if_modified_since ignore_invalid_headers keepalive_disable keepalive_requests keepalive_time \
    limit_conn_log_level limit_conn_status limit_req_log_level limit_req_status lingering_close \
    lingering_time lingering_timeout load_module lock_file log_not_found log_subrequest \
    map_hash_bucket_size map_hash_max_size master_process max_ranges msie_padding msie_refresh \
    multi_accept open_file_cache open_file_cache_errors open_file_cache_min_uses open_file_cache_valid \
    open_log_file_cache output_buffers pcre_jit pid port_in_redirect postpone_output preread_buffer_size \
    preread_timeout proxy_buffer_size proxy_buffering proxy_buffers proxy_busy_buffers_size \
    proxy_download_rate proxy_force_ranges proxy_headers_hash_bucket_size proxy_headers_hash_max_size \
    proxy_http_version proxy_ignore_client_abort proxy_max_temp_file_size proxy_request_buffering \
    proxy_socket_keepalive proxy_ssl_session_reuse proxy_temp_file_write_size proxy_temp_path \
    proxy_upload_rate quic_active_connection_id_limit quic_bpf quic_gso quic_host_key quic_retry \
    read_ahead real_ip_recursive recursive_error_pages request_pool_size reset_timedout_connection \
    resolver_timeout rewrite_log scgi_temp_path send_lowat sendfile sendfile_max_chunk \
    server_name_in_redirect server_names_hash_bucket_size server_names_hash_max_size server_tokens \
    ssl_buffer_size ssl_dhparam ssl_engine ssl_prefer_server_ciphers ssl_stapling_responder \
    ssl_stapling_verify ssl_verify_depth subrequest_output_buffer_size tcp_nodelay tcp_nopush \
    thread_pool timer_resolution types types_hash_bucket_size types_hash_max_size underscores_in_headers \
    use user uwsgi_temp_path variables_hash_bucket_size variables_hash_max_size worker_aio_requests \
    worker_connections worker_cpu_affinity worker_priority worker_rlimit_core worker_rlimit_nofile \
    working_directory zone";

/// Directives without an equivalent, by the beginning of their names, with a remedy.
const REFUSED: &[(&str, &str)] = &[
    ("add_after_body", "responses are not changed: do it in the application"),
    ("add_before_body", "responses are not changed: do it in the application"),
    ("alias", FILES),
    ("autoindex", FILES),
    ("charset", "send `Content-Type` with the charset from the application"),
    ("dav_", FILES),
    ("fastcgi_", FASTCGI),
    ("grpc_", "use `proxy_pass` semantics: an upstream with `protocol: http2`"),
    ("gunzip", "servers receive the client's `Accept-Encoding`; nothing is decompressed"),
    ("gzip_static", FILES),
    ("brotli_static", FILES),
    ("image_filter", "images are not changed: do it in the application"),
    ("index", FILES),
    ("js_", "scripts are not run: use `rules`, `authorization` or an application"),
    ("limit_rate", "bytes per second are not limited: use `rate_limits` or a limit in the application"),
    ("log_format", "write its text as `format` of `access_log`"),
    ("lua_", "scripts are not run: use `rules`, `authorization` or an application"),
    ("memcached_", "run an application in front of memcached"),
    ("open_file_cache", FILES),
    ("perl", "scripts are not run: use `rules`, `authorization` or an application"),
    ("proxy_bind", "the kernel chooses the local address of connections to servers"),
    ("proxy_cache", CACHE),
    ("proxy_cookie_", "cookies are not changed: set their path, domain and flags in the application"),
    ("proxy_ignore_headers", "headers such as `X-Accel-Redirect` have no effect here"),
    ("proxy_limit_rate", "bytes per second are not limited"),
    ("proxy_method", "the method is forwarded: change it in the application"),
    ("proxy_no_cache", CACHE),
    ("proxy_pass_header", "headers of servers are forwarded, except hop-by-hop ones"),
    ("proxy_pass_request_", "header and body are always forwarded"),
    ("proxy_set_body", "the body is always forwarded"),
    ("proxy_store", CACHE),
    ("random_index", FILES),
    ("root", FILES),
    ("scgi_", FASTCGI),
    ("set", "variables are not evaluated: write their values where they are used"),
    ("slice", CACHE),
    ("split_clients", "use `split` of the route, with weights"),
    ("ssi", "responses are not changed: do it in the application"),
    ("ssl_conf_command", "see `tls` in the reference for the settings of TLS"),
    (
        "ssl_password_file",
        "decrypt the key: `openssl pkey -in KEY -out KEY.plain`, readable by the gateway only",
    ),
    ("stub_status", "metrics are at the `admin` address, `/metrics`, on by default"),
    ("sub_filter", "responses are not changed: do it in the application"),
    ("userid", "use `sticky: [{ cookie: NAME, lifetime: 1h }]`, or set the cookie in the application"),
    ("uwsgi_", FASTCGI),
    ("xslt_", "responses are not changed: do it in the application"),
];

/// Directives that protect what is in their block, by the beginning of their names: without an equivalent, the block
/// is closed.
const GUARDS: &[(&str, &str)] = &[
    ("access_by_", "decide in a server of `authorization`"),
    ("auth_digest", "use `basic_auth` over TLS"),
    ("auth_jwt", "use `jwt` with `issuer`, `audiences` and `keys`"),
    ("auth_ldap", "use a server of `authorization`"),
    ("auth_pam", "use `basic_auth`, or a server of `authorization`"),
    ("auth_oidc", "use a server of `authorization`, such as oauth2-proxy"),
    ("auth_", "use `basic_auth`, `jwt`, or a server of `authorization`"),
    ("BasicRule", "run the firewall as its own server in front"),
    ("CheckRule", "run the firewall as its own server in front"),
    ("SecRules", "run the firewall as its own server in front"),
    ("include", "the included file cannot be read: convert it on the machine that has it"),
    ("limit_conn", "connections per client are not limited: use `rate_limits`, or `limits` of the upstream"),
    ("modsecurity", "run the firewall as its own server in front"),
    ("naxsi", "run the firewall as its own server in front"),
    ("referer_", "use a rule with a condition on the header `Referer`"),
    ("rewrite_by_", "decide in a server of `authorization`"),
    ("secure_link", "use `jwt`, or check the link in the application"),
    ("testcookie", "use `rate_limits`"),
    ("valid_referers", "use a rule with a condition on the header `Referer`"),
];

/// Directives with conversions of their own.
const HANDLED: &str = "\
    access_log add_header allow auth_basic auth_basic_user_file auth_request auth_request_set brotli \
    brotli_min_length brotli_types client_body_timeout client_header_timeout client_max_body_size deny \
    error_page expires grpc_pass gzip gzip_min_length gzip_types if internal keepalive_timeout \
    large_client_header_buffers limit_conn_zone limit_except limit_req limit_req_zone listen location \
    merge_slashes mirror mirror_request_body more_clear_headers more_set_headers proxy_connect_timeout \
    proxy_hide_header proxy_intercept_errors proxy_next_upstream proxy_next_upstream_timeout \
    proxy_next_upstream_tries proxy_pass proxy_protocol proxy_read_timeout proxy_redirect \
    proxy_send_timeout proxy_set_header proxy_ssl proxy_ssl_certificate proxy_ssl_certificate_key \
    proxy_ssl_name proxy_ssl_protocols proxy_ssl_server_name proxy_ssl_trusted_certificate \
    proxy_ssl_verify proxy_timeout real_ip_header resolver return rewrite satisfy send_timeout server \
    server_name set_real_ip_from ssl ssl_certificate ssl_certificate_key ssl_ciphers \
    ssl_client_certificate ssl_crl ssl_early_data ssl_ecdh_curve ssl_preread ssl_protocols \
    ssl_reject_handshake ssl_session_cache ssl_session_ticket_key ssl_session_tickets \
    ssl_session_timeout ssl_stapling ssl_stapling_file ssl_trusted_certificate ssl_verify_client \
    try_files worker_processes worker_shutdown_timeout";

const FILES: &str = "files are not served: keep a server for them, and forward to it with `upstream`";
const FASTCGI: &str =
    "FastCGI and its relatives are not spoken: keep a server that does, and forward to it with `upstream`";
const CACHE: &str = "responses are not cached: put a cache such as Varnish behind, or a CDN in front";

/// Treatment of a directive that has no conversion of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    Unneeded,
    Refused(&'static str),
    /// The block is closed; the text is a remedy.
    Guard(&'static str),
}

/// Returns the treatment of a directive; `None` for unknown ones.
pub(super) fn treatment(name: &str) -> Option<Treatment> {
    let begins = |(beginning, _): &&(&str, &'static str)| match *beginning {
        "set" | "index" | "root" | "alias" | "perl" | "slice" | "ssi" | "include" => name == *beginning,
        beginning => name.starts_with(beginning),
    };
    let is_in = |words: &str| words.split(' ').any(|word| word == name);
    if is_in(HANDLED) {
        return None;
    }
    if is_in(UNNEEDED) {
        return Some(Treatment::Unneeded);
    }
    if let Some((_, remedy)) = GUARDS.iter().find(begins) {
        return Some(Treatment::Guard(remedy));
    }
    REFUSED.iter().find(begins).map(|(_, remedy)| Treatment::Refused(remedy))
}

/// Files whose content does not concern a gateway.
pub(super) fn is_unneeded_include(path: &str) -> bool {
    const NAMES: [&str; 6] =
        ["mime.types", "fastcgi_params", "fastcgi.conf", "uwsgi_params", "scgi_params", "fastcgi-php.conf"];
    NAMES.iter().any(|name| path.rsplit('/').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn treatments() {
        assert_eq!(treatment("sendfile"), Some(Treatment::Unneeded));
        assert!(matches!(treatment("fastcgi_pass"), Some(Treatment::Refused(_))));
        assert!(matches!(treatment("limit_conn"), Some(Treatment::Guard(_))));
        assert!(matches!(treatment("access_by_lua_block"), Some(Treatment::Guard(_))));
        assert_eq!(treatment("limit_req_zone"), None);
        assert_eq!(treatment("set_real_ip_from"), None);
        assert_eq!(treatment("no_such"), None);
    }
}
