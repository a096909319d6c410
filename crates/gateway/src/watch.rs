//! Files that a running gateway depends on: a change to any of them reloads it.

use crate::model::{ClientAuth, Gateway, Source};
use notify::{RecursiveMode, Watcher};
use std::{
    collections::{BTreeSet, hash_map::DefaultHasher},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::sync::mpsc;

/// Editors and certificate tools touch several files in a row: wait until they have been quiet this long.
const QUIET: Duration = Duration::from_millis(250);

/// Tells when files have changed.
pub(crate) struct Watch {
    watcher: Option<notify::RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
    fingerprint: u64,
    events: mpsc::UnboundedReceiver<()>,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let (sender, events) = mpsc::unbounded_channel();
        let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // Reading a file is an event too, and a reload reads them all.
            if event.is_ok_and(|event| !event.kind.is_access()) {
                let _ = sender.send(());
            }
        });
        let watcher = watcher
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; reload with SIGHUP instead"))
            .ok();
        Self { watcher, directories: BTreeSet::new(), files: BTreeSet::new(), fingerprint: 0, events }
    }

    /// Watches what this configuration names, and the file that it came from.
    pub(crate) fn follow(&mut self, model: &Gateway, config_file: Option<&Path>) {
        self.files = sources(model).filter_map(Source::path).cloned().collect();
        self.files.extend(config_file.map(Path::to_owned));
        self.fingerprint = fingerprint(&self.files);
        // The directory, because tools replace files rather than write into them.
        let wanted: BTreeSet<PathBuf> = self.files.iter().filter_map(|file| directory(file)).collect();
        let Some(watcher) = &mut self.watcher else { return };
        for gone in self.directories.difference(&wanted) {
            let _ = watcher.unwatch(gone);
        }
        for new in wanted.difference(&self.directories) {
            if let Err(error) = watcher.watch(new, RecursiveMode::NonRecursive) {
                tracing::warn!(directory = %new.display(), %error, "cannot watch; reload with SIGHUP after changes");
            }
        }
        self.directories = wanted;
    }

    /// Resolves when the contents of a watched file have changed and all have been quiet for a moment.
    pub(crate) async fn changed(&mut self) {
        loop {
            if self.events.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
            while tokio::time::timeout(QUIET, self.events.recv()).await.is_ok_and(|event| event.is_some()) {}
            let now = fingerprint(&self.files);
            if now != self.fingerprint {
                self.fingerprint = now;
                return;
            }
        }
    }
}

fn sources(model: &Gateway) -> impl Iterator<Item = &Source> {
    let listeners = model.listeners.iter().flat_map(|listener| {
        let certificates = listener.certificates.iter();
        let client_ca = match &listener.tls.client_auth {
            ClientAuth::Off => None,
            ClientAuth::Optional(ca, _) | ClientAuth::Required(ca, _) => Some(ca),
        };
        certificates
            .flat_map(|certificate| {
                [&certificate.chain, &certificate.key].into_iter().chain(&certificate.ocsp)
            })
            .chain(client_ca)
    });
    let upstreams = model.upstreams.values().filter_map(|upstream| upstream.tls.as_ref()?.ca.as_ref());
    listeners.chain(upstreams)
}

fn directory(file: &Path) -> Option<PathBuf> {
    let parent = file.parent()?;
    Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
}

fn fingerprint(files: &BTreeSet<PathBuf>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let contents = std::fs::read(file).map(zeroize::Zeroizing::new).ok();
        (file, contents.as_ref().map(|contents| contents.as_slice())).hash(&mut hasher);
    }
    hasher.finish()
}
