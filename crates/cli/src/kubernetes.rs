//! `quadrille kubernetes`.

use crate::{
    flags::{AdminFlag, admin},
    ingress::check_certificate,
    logging::Logging,
    process::{announce, run},
    resumption_flags::ResumptionFlags,
};
use quadrille_config::{model::Gateway, values};
use quadrille_gateway::{ConfigurationSource, control};
use quadrille_kubernetes::Options;
use quadrille_kubernetes_watch::{Kubernetes as Watch, NamespacedName, Settings};
use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

/// Serve the Ingress objects of a Kubernetes cluster, and follow their changes.
///
/// In a pod, the API server and the credentials are those of its service account (the Helm chart: `ingress.enabled: true`
/// creates it, with a role that allows what is used). Outside of a cluster:
///   quadrille kubernetes --kubeconfig ~/.kube/config --http 127.0.0.1:8080 --https 127.0.0.1:8443
///
/// Reads Ingress objects of a class with the annotations of ingress-nginx, their Services, EndpointSlices, Secrets and
/// ConfigMaps. What works is listed by `quadrille ingress report` and in docs/reference/ingress-nginx.md. A setting that does
/// not work is an Event on its object, a line in the log, and counted in quadrille_kubernetes_settings_refused; if it guards
/// (passwords, source ranges, client certificates), its paths respond with 503.
///
/// Changes are live after some milliseconds; only what has changed is built again. While the API server cannot be reached,
/// the last configuration serves. The admin page /ready is 503 until the first one serves, and /status shows the age of the
/// view. Keys of Secrets stay in memory.
///
/// One process, by a Lease, writes Events and, with --publish-status-address or --publish-service, the addresses in the
/// status of Ingress objects.
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Kubernetes {
    /// File with the API server and the credentials [default: the service account of the pod].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Watch the objects of this namespace [default: all]. May be repeated. A Role in each then suffices.
    #[arg(long, value_name = "NAMESPACE")]
    watch_namespace: Vec<String>,
    /// Class of the Ingress objects.
    #[arg(long, value_name = "NAME", default_value = "nginx")]
    ingress_class: String,
    /// Controller of the IngressClass objects.
    #[arg(long, value_name = "NAME", default_value = "k8s.io/ingress-nginx")]
    controller_class: String,
    /// The ConfigMap with defaults, in the keys of ingress-nginx, as NAMESPACE/NAME [default: none].
    #[arg(long, value_name = "NAME")]
    configmap: Option<NamespacedName>,
    /// The Secret of the certificate for hosts without one, as NAMESPACE/NAME.
    #[arg(long, value_name = "NAME")]
    default_ssl_certificate: Option<NamespacedName>,
    /// Address to write to the status of Ingress objects: an IP address or a DNS name. May be repeated.
    #[arg(long, value_name = "ADDRESS")]
    publish_status_address: Vec<String>,
    /// The Service, as NAMESPACE/NAME, whose addresses are written to the status of Ingress objects.
    #[arg(long, value_name = "NAME", conflicts_with = "publish_status_address")]
    publish_service: Option<NamespacedName>,
    /// The Lease, as NAMESPACE/NAME, whose holder writes Events and status [default: quadrille in the own namespace].
    #[arg(long, value_name = "NAME")]
    lease: Option<NamespacedName>,
    /// Name of this process in the Lease [default: the host's name and the process id].
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    identity: Option<String>,
    /// Address of HTTP.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:80")]
    http: String,
    /// Address of HTTPS.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:443")]
    https: String,
    #[command(flatten)]
    resumption: ResumptionFlags,
    /// Event-loop threads [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = values::count)]
    threads: Option<NonZeroUsize>,
    /// Metrics and health, in plain HTTP: an address or off [default: 127.0.0.1:9901].
    #[arg(long, value_name = "ADDRESS", value_parser = admin)]
    admin: Option<AdminFlag>,
    /// A name under which the admin address may be requested, besides its own and localhost. May be repeated.
    #[arg(long, value_name = "NAME", requires = "admin")]
    admin_host: Vec<String>,
    /// Time for which connections are still accepted after SIGTERM, while /ready fails [default: 5s].
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    lame_duck: Option<Duration>,
    /// Maximum time that a drain waits for open connections [default: 30s].
    #[arg(long, value_name = "TIME", value_parser = values::timeout)]
    drain_timeout: Option<Duration>,
    #[command(flatten)]
    logging: Logging,
}

impl Kubernetes {
    pub(crate) fn run(self) -> Result<(), Vec<String>> {
        let problems = self.resumption.contradictions();
        if !problems.is_empty() {
            return Err(problems);
        }
        let logging = self.logging.clone();
        let (settings, base) = self.into_parts();
        let watch = Watch::new(settings, base.clone());
        let (control, updates) = control();
        let origin = ConfigurationSource {
            updates: Some(updates),
            pages: Some(Arc::new(watch.pages())),
            ..ConfigurationSource::reading(None, watch.reread())
        };
        watch.check()?;
        run(base, origin, &logging, |bound| {
            announce(bound);
            let ending = control.clone();
            if let Err(problems) = watch.start(control) {
                problems.lines().iter().for_each(|problem| tracing::error!("{problem}"));
                ending.end();
            }
        })
    }

    /// Returns the settings of the watch, and those of the gateway that do not come from the cluster.
    fn into_parts(self) -> (Settings, Gateway) {
        let mut base = Gateway::default();
        base.resumption = self.resumption.into_model();
        base.threads = self.threads;
        base.lame_duck = self.lame_duck.unwrap_or(base.lame_duck);
        base.drain_timeout = self.drain_timeout.unwrap_or(base.drain_timeout);
        if let Some(admin) = self.admin {
            base.admin = admin.into_model();
        }
        if let Some(admin) = &mut base.admin {
            admin.hosts = self.admin_host;
        }
        let translation = Options {
            class: self.ingress_class,
            controller: self.controller_class,
            http: self.http,
            https: self.https,
            // Without one, the translation would take a ConfigMap with a usual name of any namespace.
            config_map: Some(self.configmap.map(|name| name.to_string()).unwrap_or_default()),
            default_certificate: self.default_ssl_certificate.map(|name| name.to_string()),
            check_certificate,
            by_reference: true,
        };
        let settings = Settings {
            translation,
            kubeconfig: self.kubeconfig,
            namespaces: self.watch_namespace,
            addresses: self.publish_status_address,
            publish_service: self.publish_service,
            lease: self.lease,
            identity: self.identity.unwrap_or_else(default_identity),
        };
        (settings, base)
    }
}

fn default_identity() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = if host.trim().is_empty() { "quadrille" } else { host.trim() };
    format!("{host}-{}", std::process::id())
}
