//! Transport sockets, certificates, and certificate validation.

use super::{
    FieldPolicy::{Accepted, Ignored, Read, Refused, RefusedWith},
    STRICT, Schema,
};

pub(crate) const DOWNSTREAM_TLS: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
    fields: &[
        ("common_tls_context", Read("")),
        ("require_client_certificate", Read("")),
        (
            "require_sni",
            RefusedWith("clients without SNI get the first certificate", "match `server_names` instead"),
        ),
        (
            "session_ticket_keys",
            Read("80 bytes each; process-wide: all listeners with keys must have the same"),
        ),
        ("session_ticket_keys_sds_secret_config", Read("as `session_ticket_keys`")),
        ("disable_stateless_session_resumption", Read("process-wide: one listener disables tickets for all")),
        (
            "disable_stateful_session_resumption",
            Read("process-wide: one listener disables the session cache for all"),
        ),
        ("session_timeout", Read("process-wide: the shortest applies")),
        ("ocsp_staple_policy", Read("`LENIENT_STAPLING`")),
        ("full_scan_certs_on_sni_mismatch", Accepted("the best certificate is always selected")),
        (
            "prefer_client_ciphers",
            Ignored("the client's order always decides between AEADs of equal strength"),
        ),
    ],
    others: STRICT,
};

pub(crate) const UPSTREAM_TLS: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
    fields: &[
        ("common_tls_context", Read("")),
        (
            "sni",
            Read(
                "sent, not verified: `match_typed_subject_alt_names` sets the names a certificate must have",
            ),
        ),
        ("auto_host_sni", Accepted("without `sni`, the endpoint's host is sent")),
        ("allow_renegotiation", Refused("renegotiation is never allowed")),
        ("max_session_keys", Ignored("connections are reused instead of sessions")),
        ("enforce_rsa_key_usage", Accepted("")),
        (
            "auto_sni_san_validation",
            Refused("set the certificate's names in `match_typed_subject_alt_names`"),
        ),
    ],
    others: STRICT,
};

pub(crate) const COMMON_TLS: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext",
    fields: &[
        ("tls_params", Read("")),
        ("tls_certificates", Read("a single mapping is read as a list of one")),
        ("tls_certificate_sds_secret_configs", Read("")),
        ("validation_context", Read("")),
        ("validation_context_sds_secret_config", Read("")),
        ("combined_validation_context", Read("")),
        (
            "alpn_protocols",
            Read(
                "listeners: without `istio-peer-exchange`; clusters: `istio` indicates an Istio mesh; others are derived from the protocol",
            ),
        ),
        ("key_log", Ignored("no key log is written")),
        ("custom_handshaker", Refused("custom handshakers are not supported")),
        ("custom_tls_certificate_selector", Refused("certificates are chosen by SNI and key type")),
        ("tls_certificate_provider_instance", Refused("use `tls_certificates` or SDS")),
        ("tls_certificate_certificate_provider", Refused("use `tls_certificates` or SDS")),
        ("tls_certificate_certificate_provider_instance", Refused("use `tls_certificates` or SDS")),
        ("validation_context_certificate_provider", Refused("use `validation_context` or SDS")),
        ("validation_context_certificate_provider_instance", Refused("use `validation_context` or SDS")),
    ],
    others: STRICT,
};

pub(crate) const COMBINED_VALIDATION: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.CommonTlsContext.CombinedCertificateValidationContext",
    fields: &[
        ("default_validation_context", Read("")),
        ("validation_context_sds_secret_config", Read("the secret is merged into the default")),
    ],
    others: STRICT,
};

pub(crate) const TLS_PARAMETERS: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.TlsParameters",
    fields: &[
        ("tls_minimum_protocol_version", Read("`TLS_AUTO` is 1.2")),
        ("tls_maximum_protocol_version", Read("`TLS_AUTO` is 1.3")),
        ("cipher_suites", Read("for TLS 1.2 and below, by BoringSSL's names")),
        ("ecdh_curves", Read("X25519MLKEM768, X25519, P-256, P-384, P-521")),
        ("signature_algorithms", Refused("determined by the certificate's key")),
        ("compliance_policies", Refused("set versions, suites and curves")),
    ],
    others: STRICT,
};

pub(crate) const TLS_CERTIFICATE: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.TlsCertificate",
    fields: &[
        ("certificate_chain", Read("PEM, leaf first")),
        (
            "private_key",
            Read("PEM, not encrypted; RSA of 2048 bits and more, P-256, P-384, P-521, Ed25519, ML-DSA"),
        ),
        ("private_key_provider", Read("`cryptomb` and `qat`")),
        ("ocsp_staple", Read("DER")),
        ("watched_directory", Accepted("files are always watched, including renamed directories")),
        ("password", RefusedWith("encrypted keys are not supported", "decrypt it with `openssl pkey`")),
        ("pkcs12", RefusedWith("PKCS #12 is not supported", "convert it with `openssl pkcs12`")),
        ("signed_certificate_timestamp", Ignored("only timestamps in the certificate are used")),
    ],
    others: STRICT,
};

pub(crate) const PRIVATE_KEY_PROVIDER: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.PrivateKeyProvider",
    fields: &[
        ("provider_name", Read("`cryptomb` or `qat`; others only with `fallback: true` and a `private_key`")),
        ("typed_config", Read("")),
        ("fallback", Read("not needed for `cryptomb` and `qat`: the engine runs on every CPU")),
    ],
    others: STRICT,
};

pub(crate) const CRYPTOMB: Schema = Schema {
    name: "envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig",
    fields: &[
        ("private_key", Read("")),
        (
            "poll_delay",
            Read(
                "of this key; operations of all keys are batched, and computed when the first has waited this long; `0` does not wait",
            ),
        ),
    ],
    others: STRICT,
};

pub(crate) const QAT: Schema = Schema {
    name: "envoy.extensions.private_key_providers.qat.v3alpha.QatPrivateKeyMethodConfig",
    fields: &[
        ("private_key", Read("computed by the CPU, in batches")),
        ("poll_delay", Accepted("poll interval of the card, which is not used")),
    ],
    others: STRICT,
};

pub(crate) const VALIDATION: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.CertificateValidationContext",
    fields: &[
        ("trusted_ca", Read("PEM")),
        ("verify_certificate_spki", Read("listeners only")),
        ("verify_certificate_hash", Read("listeners only")),
        ("match_typed_subject_alt_names", Read("")),
        ("match_subject_alt_names", Read("as `match_typed_subject_alt_names`, of any kind")),
        ("crl", Read("listeners only")),
        ("system_root_certs", Read("clusters only")),
        ("watched_directory", Accepted("files are always watched, including renamed directories")),
        ("trust_chain_verification", Read("`VERIFY_TRUST_CHAIN`")),
        ("allow_expired_certificate", Refused("expired certificates are never accepted")),
        ("require_signed_certificate_timestamp", Refused("timestamps are not verified")),
        ("custom_validator_config", Refused("custom validators are not supported")),
        ("only_verify_leaf_cert_crl", Refused("with revocation lists, the whole chain is verified")),
        ("max_verify_depth", Refused("the chain length limit is fixed")),
        ("ca_certificate_provider_instance", Refused("use `trusted_ca` or SDS")),
    ],
    others: STRICT,
};

pub(crate) const SAN_MATCHER: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.SubjectAltNameMatcher",
    fields: &[
        ("san_type", Read("`DNS`, `URI`, `EMAIL`, `IP_ADDRESS`")),
        ("matcher", Read("")),
        ("oid", Refused("other name types are not matched")),
    ],
    others: STRICT,
};

pub(crate) const SDS_SECRET: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.SdsSecretConfig",
    fields: &[("name", Read("")), ("sds_config", Read("without it, the static secret of this name"))],
    others: STRICT,
};

pub(crate) const SECRET: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.Secret",
    fields: &[
        ("name", Read("")),
        ("tls_certificate", Read("")),
        ("session_ticket_keys", Read("")),
        ("validation_context", Read("")),
        ("generic_secret", Ignored("not used")),
    ],
    others: STRICT,
};

pub(crate) const TICKET_KEYS: Schema = Schema {
    name: "envoy.extensions.transport_sockets.tls.v3.TlsSessionTicketKeys",
    fields: &[("keys", Read("80 bytes each: the first encrypts, the others decrypt"))],
    others: STRICT,
};

pub(crate) const TRANSPORT_SOCKET: Schema = Schema {
    name: "envoy.config.core.v3.TransportSocket",
    fields: &[
        ("name", Accepted("the type of `typed_config` is used")),
        ("typed_config", Read("TLS, or plain text (`raw_buffer`)")),
    ],
    others: STRICT,
};
