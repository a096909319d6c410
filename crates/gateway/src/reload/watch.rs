//! Files that a running gateway depends on: a change to any of them reloads it.

use crate::process::digest::digest;
use notify::{RecursiveMode, Watcher};
use quadrille_config::model::{Gateway, Listener, Source, UpstreamTls};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;

/// Editors and certificate tools touch several files in a row: wait until they have been quiet this long.
const QUIET: Duration = Duration::from_millis(250);
/// No longer than this.
const PATIENCE: Duration = Duration::from_secs(2);

/// What some files contained at some time, as digests.
#[derive(Default)]
pub(crate) struct Contents(BTreeMap<PathBuf, u64>);

impl Contents {
    /// The configuration file, as it is now.
    pub(crate) fn of_file(file: Option<&Path>) -> Self {
        let mut this = Self::default();
        this.extend(file);
        this
    }

    /// And the files that a configuration names, as they are now.
    pub(crate) fn with_sources(mut self, model: &Gateway) -> Self {
        self.extend(sources(model).filter_map(Source::path).map(PathBuf::as_path));
        self
    }

    /// And these files and directories: of a directory, which files are in it and what they hold.
    pub(crate) fn with_paths<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        for path in paths {
            let inside = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
            let inside: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
            self.extend(std::iter::once(path).chain(inside.iter().map(PathBuf::as_path)));
        }
        self
    }

    /// And what others contained; where both have seen a file, the others count.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// The same files, as they were in `earlier`, if they are there.
    pub(crate) fn remembering(mut self, earlier: &Self) -> Self {
        for (file, digest) in &mut self.0 {
            *digest = earlier.0.get(file).copied().unwrap_or(*digest);
        }
        self
    }

    /// The same files, as they are now.
    fn renewed(&self) -> Self {
        Self(self.0.keys().map(|file| (file.clone(), contents_of(file))).collect())
    }

    fn extend<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) {
        self.0.extend(files.into_iter().map(|file| (file.to_owned(), contents_of(file))));
    }
}

/// Tells when files have changed.
pub(crate) struct Watch {
    watcher: Option<notify::RecommendedWatcher>,
    directories: BTreeSet<PathBuf>,
    contents: Contents,
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
        Self { watcher, directories: BTreeSet::new(), contents: Contents::default(), events }
    }

    /// What is watched for, with what is known of it.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Watches these files for contents other than these.
    pub(crate) fn follow(&mut self, contents: Contents) {
        // The directory, because tools replace files rather than write into them.
        let wanted: BTreeSet<PathBuf> = contents.0.keys().filter_map(|file| directory(file)).collect();
        self.contents = contents;
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
            // Somebody else may write into the same directory all the time.
            let latest = Instant::now() + PATIENCE;
            while Instant::now() < latest
                && tokio::time::timeout(QUIET, self.events.recv()).await.is_ok_and(|event| event.is_some())
            {
            }
            let now = self.contents.renewed();
            if now.0 != self.contents.0 {
                self.contents = now;
                return;
            }
        }
    }
}

fn sources(model: &Gateway) -> impl Iterator<Item = &Source> {
    let chains = model.listeners.iter().flat_map(Listener::all_chains);
    let listeners = chains.filter_map(|chain| chain.tls.as_ref()).flat_map(|tls| tls.sources());
    let upstreams = model.upstreams.values().filter_map(|upstream| upstream.tls.as_ref());
    let upstreams = upstreams.flat_map(UpstreamTls::sources);
    listeners.chain(upstreams).chain(model.resumption.sources())
}

fn directory(file: &Path) -> Option<PathBuf> {
    if file.is_dir() {
        return Some(file.to_owned());
    }
    let parent = file.parent()?;
    Some(if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() })
}

fn contents_of(file: &Path) -> u64 {
    if let Ok(entries) = std::fs::read_dir(file) {
        let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        return digest(&names);
    }
    let contents = std::fs::read(file).map(zeroize::Zeroizing::new).ok();
    digest(&contents.as_ref().map(|contents| contents.as_slice()))
}
