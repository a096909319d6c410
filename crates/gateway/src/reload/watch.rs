//! Watched files: a change to any of them reloads the configuration.

use crate::process::digest::digest;
use futures_util::{FutureExt, StreamExt};
use inotify::{EventStream, Inotify, WatchDescriptor, WatchMask};
use quadrille_config::model::{AccessStep, Chain, Gateway, Http, Listener, Source, Upstream, UpstreamTls};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

/// Quiet period before a reload, because editors and certificate tools change several files in a row.
const QUIET: Duration = Duration::from_millis(250);
/// Maximum delay of a reload.
const PATIENCE: Duration = Duration::from_secs(2);

/// Digests of file contents at some time.
#[derive(Clone, Default)]
pub(crate) struct Contents(BTreeMap<PathBuf, u64>);

impl Contents {
    /// Reads the configuration file.
    pub(crate) fn of_file(file: Option<&Path>) -> Self {
        let mut this = Self::default();
        this.extend(file);
        this
    }

    /// Adds the current contents of the files that a configuration references.
    pub(crate) fn with_sources(mut self, model: &Gateway) -> Self {
        self.extend(sources(model).filter_map(Source::path).map(PathBuf::as_path));
        self
    }

    /// Adds these files and directories; a directory contributes the names and contents of its files.
    pub(crate) fn with_paths<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        for path in paths {
            let inside = std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
            let inside: Vec<PathBuf> = inside.map(|entry| entry.path()).collect();
            self.extend(std::iter::once(path).chain(inside.iter().map(PathBuf::as_path)));
        }
        self
    }

    /// Adds these files, and the names of the files in these directories.
    pub(crate) fn with_names<'a>(mut self, paths: impl IntoIterator<Item = &'a Path>) -> Self {
        self.extend(paths);
        self
    }

    /// Adds the contents in `others`, which take precedence for files in both.
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.0.extend(others.0);
        self
    }

    /// Returns the same files with their contents from `earlier`, where present.
    pub(crate) fn remembering(mut self, earlier: &Self) -> Self {
        for (file, digest) in &mut self.0 {
            *digest = earlier.0.get(file).copied().unwrap_or(*digest);
        }
        self
    }

    /// Returns the same files with their current contents.
    fn renewed(&self) -> Self {
        Self(self.0.keys().map(|file| (file.clone(), contents_of(file))).collect())
    }

    fn extend<'a>(&mut self, files: impl IntoIterator<Item = &'a Path>) {
        self.0.extend(files.into_iter().map(|file| (file.to_owned(), contents_of(file))));
    }
}

/// Events of a file that is written or replaced. Reads, and single writes to a file that stays open, are excluded: a
/// log in the same directory would wake the gateway for every request that it serves.
const EVENTS: WatchMask = WatchMask::ATTRIB
    .union(WatchMask::CREATE)
    .union(WatchMask::CLOSE_WRITE)
    .union(WatchMask::DELETE)
    .union(WatchMask::DELETE_SELF)
    .union(WatchMask::MOVE)
    .union(WatchMask::MOVE_SELF)
    .union(WatchMask::ONLYDIR);

/// Detects changes of files.
pub(crate) struct Watch {
    events: Option<EventStream<Vec<u8>>>,
    directories: BTreeMap<PathBuf, WatchDescriptor>,
    contents: Contents,
    /// Time of the first event that was not yet processed.
    first_event: Option<Instant>,
}

impl Watch {
    /// Creates a watch without files. If inotify is not available, it logs a warning and reports no changes.
    pub(crate) fn new() -> Self {
        let events = Inotify::init().and_then(|inotify| inotify.into_event_stream(vec![0; 4096]));
        let events = events
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; reload with SIGHUP instead"))
            .ok();
        Self { events, directories: BTreeMap::new(), contents: Contents::default(), first_event: None }
    }

    /// Returns the known contents of the watched files.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Watches these files for a change of their contents.
    pub(crate) fn follow(&mut self, contents: Contents) {
        // Watches the directory, because tools replace files rather than write to them.
        let wanted: BTreeSet<PathBuf> = contents.0.keys().filter_map(|file| directory(file)).collect();
        self.contents = contents;
        let Some(events) = &self.events else { return };
        let mut watches = events.watches();
        self.directories.retain(|directory, watch| {
            let stays = wanted.contains(directory);
            if !stays {
                let _ = watches.remove(watch.clone());
            }
            stays
        });
        for directory in wanted {
            // A watch refers to a directory, not to its path, at which there may be another directory by now.
            match watches.add(&directory, EVENTS) {
                Ok(watch) if self.directories.get(&directory) == Some(&watch) => {}
                Ok(watch) => {
                    let before = self.directories.insert(directory, watch);
                    // Changes since `contents` were read, but before the watch, caused no event.
                    self.first_event.get_or_insert_with(Instant::now);
                    if let Some(before) =
                        before.filter(|before| !self.directories.values().any(|one| one == before))
                    {
                        let _ = watches.remove(before);
                    }
                }
                Err(error) => {
                    self.directories.remove(&directory);
                    tracing::warn!(directory = %directory.display(), %error, "cannot watch; reload with SIGHUP after changes");
                }
            }
        }
    }

    /// Resolves when the contents of a watched file have changed and the quiet period has passed. Cancellation safe:
    /// no event is lost.
    pub(crate) async fn changed(&mut self) {
        loop {
            if self.first_event.is_none() {
                self.event().await;
            }
            let first = *self.first_event.get_or_insert_with(Instant::now);
            // Other programs may write to the same directory continuously; their events wait in the kernel meanwhile.
            loop {
                tokio::time::sleep(QUIET).await;
                if !self.drain() || first.elapsed() >= PATIENCE {
                    break;
                }
            }
            self.first_event = None;
            let now = self.contents.renewed();
            if now.0 != self.contents.0 {
                self.contents = now;
                return;
            }
        }
    }

    /// Resolves at an event in a watched directory.
    async fn event(&mut self) {
        let Some(events) = &mut self.events else { return std::future::pending().await };
        if let Some(Err(error)) = events.next().await {
            tracing::warn!(%error, "cannot watch files any longer; reload with SIGHUP instead");
            self.events = None;
            std::future::pending::<()>().await;
        }
    }

    /// Takes the pending events, and returns whether there were any.
    fn drain(&mut self) -> bool {
        let Some(events) = &mut self.events else { return false };
        let mut any = false;
        while let Some(Some(Ok(_))) = events.next().now_or_never() {
            any = true;
        }
        any
    }
}

fn sources(model: &Gateway) -> impl Iterator<Item = &Source> {
    let chains = || model.listeners.iter().flat_map(Listener::all_chains);
    let users = chains().filter_map(Chain::http).flat_map(Http::basic_auths).map(|auth| &auth.users);
    let pages = chains().filter_map(Chain::http).flat_map(Http::all_error_pages).map(|page| &page.body);
    let steps = chains().filter_map(Chain::http).flat_map(|http| &http.access);
    let token_keys = steps.flat_map(AccessStep::token_issuers).filter_map(|issuer| issuer.keys.local());
    let listeners = chains().filter_map(|chain| chain.tls.as_ref()).flat_map(|tls| tls.sources());
    let upstreams = model.upstreams.values().flat_map(Upstream::transports).flatten();
    let upstreams = upstreams.flat_map(UpstreamTls::sources);
    let on_demand = model.acme.iter().filter_map(|acme| acme.on_demand.as_ref());
    let key_servers = on_demand.filter_map(|on_demand| on_demand.keyless.as_ref());
    let key_servers = key_servers.flat_map(|keyless| keyless.sources());
    let collectors = model.tracing.iter().filter_map(|tracing| tracing.collector.tls());
    let collectors = collectors.flat_map(UpstreamTls::sources);
    listeners
        .chain(users)
        .chain(pages)
        .chain(token_keys)
        .chain(upstreams)
        .chain(key_servers)
        .chain(collectors)
        .chain(model.resumption.sources())
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

#[cfg(test)]
mod tests {
    use super::*;
    use inotify::EventMask;
    use std::{fs, io::Write as _};

    #[tokio::test]
    async fn a_log_in_the_directory_causes_no_event_per_line() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = directory.path().join("chain.pem");
        fs::write(&certificate, "one").unwrap();
        let mut log = fs::File::create(directory.path().join("access.log")).unwrap();
        let mut watch = Watch::new();
        watch.follow(Contents::of_file(Some(&certificate)));
        for _ in 0..100 {
            log.write_all(b"GET /\n").unwrap();
            fs::read(&certificate).unwrap();
        }
        drop(log);
        // The first event is the one of the last operation.
        let event = watch.events.as_mut().unwrap().next().await.unwrap().unwrap();
        assert_eq!(event.mask, EventMask::CLOSE_WRITE);
        assert!(!watch.drain());
    }

    /// Replaces a directory like a kubelet does for a file of a Secret whose path has several segments.
    #[tokio::test]
    async fn a_directory_that_is_replaced_is_watched_again() {
        let volume = tempfile::tempdir().unwrap();
        let publish = |version: &str| {
            fs::create_dir_all(volume.path().join(version).join("site")).unwrap();
            fs::write(volume.path().join(version).join("site/tls.crt"), version).unwrap();
            std::os::unix::fs::symlink(version, volume.path().join("new")).unwrap();
            let before = fs::read_link(volume.path().join("data")).ok();
            fs::rename(volume.path().join("new"), volume.path().join("data")).unwrap();
            before.into_iter().for_each(|before| fs::remove_dir_all(volume.path().join(before)).unwrap());
        };
        publish("v1");
        std::os::unix::fs::symlink("data/site", volume.path().join("site")).unwrap();
        let certificate = volume.path().join("site/tls.crt");
        let mut watch = Watch::new();
        for version in ["v2", "v3", "v4"] {
            watch.follow(Contents::of_file(Some(&certificate)));
            publish(version);
            tokio::time::timeout(PATIENCE * 2, watch.changed()).await.expect(version);
        }
        // A change before the watch is detected, too.
        let contents = Contents::of_file(Some(&certificate));
        publish("v5");
        watch.follow(contents);
        tokio::time::timeout(PATIENCE * 2, watch.changed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_change_is_reported_although_the_first_waiter_was_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let certificate = directory.path().join("chain.pem");
        fs::write(&certificate, "one").unwrap();
        let mut watch = Watch::new();
        watch.follow(Contents::of_file(Some(&certificate)));
        fs::write(&certificate, "two").unwrap();
        tokio::time::timeout(QUIET / 2, watch.changed()).await.unwrap_err();
        tokio::time::timeout(PATIENCE * 2, watch.changed()).await.unwrap();
    }
}
