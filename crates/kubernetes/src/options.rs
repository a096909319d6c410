//! Settings of a translation.

/// Settings of a translation: those that ingress-nginx takes as flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the class whose objects are translated, where the input has no IngressClass of this name.
    pub class: String,
    /// The controller of IngressClass objects whose Ingress objects are translated.
    pub controller: String,
    /// Address and port of HTTP.
    pub http: String,
    /// Address and port of HTTPS.
    pub https: String,
    /// The ConfigMap as `namespace/name`; without it, the one with a usual name; empty for none.
    pub config_map: Option<String>,
    /// The Secret of the certificate for hosts without one, as `namespace/name`.
    pub default_certificate: Option<String>,
    /// Checks that a chain and a key, in PEM, can be used and belong together; returns the reason if not.
    pub check_certificate: fn(&str, &str) -> Result<(), String>,
    /// Whether certificates and keys are written as references, for [`insert_secrets`](crate::insert_secrets), in place
    /// of their text. The result of `check_certificate` is then kept with the Secret.
    pub by_reference: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            class: "nginx".to_owned(),
            controller: "k8s.io/ingress-nginx".to_owned(),
            http: "[::]:80".to_owned(),
            https: "[::]:443".to_owned(),
            config_map: None,
            default_certificate: None,
            check_certificate: |_, _| Ok(()),
            by_reference: false,
        }
    }
}
