//! The bootstrap configuration, and the resource files that it names.

use crate::{
    cluster::cluster,
    common::own_address,
    config_source::{ApiSource, ConfigSource, api_source, timed_config_source},
    listener::listener,
    overload,
    reader::{Field, ReadMessage, reader},
    redaction::redacted,
    resource::{Resource, read_at},
    resource_type::ResourceType,
    resources::Resources,
    schema,
    settings::ProcessSettings,
    tls::secret,
};
use quadrille_config::{
    Diagnostic, Diagnostics, Problem, Warnings,
    model::{Admin, Gateway, MemoryLimit, Origin},
    read_text,
    yaml::{Limits, Node},
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

/// A bootstrap.
#[derive(Clone, Debug)]
pub struct Bootstrap {
    /// Origin: the file.
    pub origin: Origin,
    /// Settings that are not part of resources.
    pub process: ProcessSettings,
    /// Resources in the bootstrap and in the files that it names.
    pub resources: Resources,
    /// Warnings about it.
    pub warnings: Warnings,
    /// Resource files that were read, in addition to the bootstrap.
    pub files: Vec<PathBuf>,
    /// Identity of this process for control planes.
    pub node: Option<Node>,
    /// The node's id; may be empty.
    pub node_id: String,
    /// The node's cluster; may be empty.
    pub node_cluster: String,
    /// Sources of dynamic resources.
    pub dynamic: DynamicResources,
    /// The bootstrap as written, without secrets.
    pub dump: Arc<serde_json::Value>,
}

/// Sources of listeners and clusters that are not in the bootstrap.
#[derive(Clone, Debug, Default)]
pub struct DynamicResources {
    /// The control plane of the aggregated stream (ADS).
    pub ads: Option<ApiSource>,
    /// Source of listeners.
    pub lds: Option<ConfigSource>,
    /// Source of clusters.
    pub cds: Option<ConfigSource>,
    /// Time limits of waiting for the first listeners and the first clusters; zero is unlimited.
    pub initial_fetch_timeouts: [Duration; 2],
}

/// Reads a bootstrap, and the resource files that it names.
///
/// # Errors
/// Every mistake in it, with file, line, field and remedy.
pub fn load(path: &Path) -> Result<Bootstrap, Diagnostics> {
    bootstrap(&read_text(path)?, &path.display().to_string())
}

/// Reads a bootstrap from text, and the resource files that it names. Errors name `file_name`.
///
/// # Errors
/// Every mistake in it, with file, line, field and remedy.
pub fn bootstrap(text: &str, file_name: &str) -> Result<Bootstrap, Diagnostics> {
    let origin = Origin::file(file_name);
    let root = parse(text, &origin)?;
    let reader = reader(origin);
    let found = read_bootstrap(&reader.root(&root, ""));
    let (mut bootstrap, warnings) = reader.finish(found)?;
    bootstrap.warnings.extend(warnings);
    bootstrap.read_files()?;
    Ok(bootstrap)
}

fn parse(text: &str, origin: &Origin) -> Result<Node, Diagnostics> {
    match quadrille_config::yaml::read(text, Limits::BY_PROGRAM) {
        Ok(Some(root)) => Ok(root),
        Ok(None) => Err(Diagnostics::whole(origin.clone(), "the file is empty")),
        Err(error) => Err(Diagnostic::syntax(origin, error).into()),
    }
}

fn read_bootstrap(field: &Field<'_>) -> Option<Bootstrap> {
    let message = field.message(&schema::BOOTSTRAP)?;
    let mut resources = Resources::default();
    if let Some(field) = message.get("static_resources") {
        static_resources(&field, &mut resources)?;
    }
    let dynamic = match message.get("dynamic_resources") {
        Some(field) => dynamic(&field)?,
        None => DynamicResources::default(),
    };
    let admin = match message.get("admin") {
        Some(field) => admin(&field)?,
        None => None,
    };
    let memory = match message.get("overload_manager") {
        Some(field) => overload::memory_limit(&field)?,
        None => MemoryLimit::default(),
    };
    let node = message.get("node");
    let (mut node_id, mut node_cluster) = (String::new(), String::new());
    if let Some(node) = &node {
        let node = node.message(&schema::NODE)?;
        (node_id, node_cluster) = (node.string("id"), node.string("cluster"));
    }
    Some(Bootstrap {
        origin: field.origin().clone(),
        process: ProcessSettings { admin, memory, ..ProcessSettings::default() },
        resources,
        warnings: Warnings::default(),
        files: Vec::new(),
        node: node.map(|node| node.node().clone()),
        node_id,
        node_cluster,
        dynamic,
        dump: Arc::new(redacted(field.node())),
    })
}

/// Returns `None` if there is no address.
fn admin(field: &Field<'_>) -> Option<Option<Admin>> {
    let message = field.message(&schema::ADMIN)?;
    let Some(address) = message.get("address") else { return Some(None) };
    Some(Some(Admin::new(own_address(&address)?, address.place())))
}

fn static_resources(field: &Field<'_>, resources: &mut Resources) -> Option<()> {
    let message = field.message(&schema::STATIC_RESOURCES)?;
    let mut good = true;
    let mut add = |kind, field: &Field<'_>, found: Option<(String, Resource)>| {
        let Some((name, resource)) = found else {
            good = false;
            return;
        };
        if resources.contains(kind, &name) {
            field.error(Problem::new(format!("`{name}` is set twice"), "remove one"));
            good = false;
        }
        resources.insert_static(name, resource);
    };
    for field in message.list("secrets") {
        let found = secret(&field).map(|(name, found)| (name, Resource::Secret(Arc::new(found))));
        add(ResourceType::Secret, &field, found);
    }
    for field in message.list("clusters") {
        let found = cluster(&field).map(|(name, found)| (name, Resource::Cluster(Arc::new(found))));
        add(ResourceType::Cluster, &field, found);
    }
    for field in message.list("listeners") {
        let found = listener(&field).map(|(name, found)| (name, Resource::Listener(Arc::new(found))));
        add(ResourceType::Listener, &field, found);
    }
    good.then_some(())
}

fn dynamic(field: &Field<'_>) -> Option<DynamicResources> {
    let message = field.message(&schema::DYNAMIC_RESOURCES)?;
    let source = |name| match message.get(name) {
        Some(field) => timed_config_source(&field).map(|(source, timeout)| (Some(source), timeout)),
        None => Some((None, Duration::ZERO)),
    };
    let ads = match message.get("ads_config") {
        Some(field) => Some(api_source(&field)?),
        None => None,
    };
    let ((lds, lds_timeout), (cds, cds_timeout)) = (source("lds_config")?, source("cds_config")?);
    if ads.is_none() && [&lds, &cds].into_iter().any(|source| matches!(source, Some(ConfigSource::Ads))) {
        return field.fail(Problem::new("`ads_config` is missing", "it names the control plane"));
    }
    Some(DynamicResources { ads, lds, cds, initial_fetch_timeouts: [lds_timeout, cds_timeout] })
}

impl Bootstrap {
    /// Returns the gateway configured by the available resources.
    ///
    /// # Errors
    /// Every contradiction, and every reference to a resource that cannot arrive, with its place.
    pub fn model(&self) -> Result<(Gateway, Warnings), Diagnostics> {
        self.resources.refuse_never_coming()?;
        let (gateway, more) = self.resources.model(&self.process)?;
        let mut warnings = self.warnings.clone();
        warnings.extend(more);
        Ok((gateway, warnings))
    }

    /// Returns whether any resource comes from a control plane.
    pub fn is_dynamic(&self) -> bool {
        !self.control_planes().is_empty()
    }

    /// Returns the clusters of all control planes.
    fn control_planes(&self) -> BTreeSet<String> {
        let DynamicResources { ads, lds, cds, .. } = &self.dynamic;
        let references = self.resources.references();
        let sources = [lds, cds].into_iter().flatten();
        let maps = [&references.routes, &references.endpoints, &references.secrets];
        let sources = sources.chain(maps.into_iter().flat_map(|map| map.values()));
        let api = sources.filter_map(|source| match source {
            ConfigSource::Api(api) => Some(api.cluster.clone()),
            ConfigSource::Ads | ConfigSource::File(_) => None,
        });
        api.chain(ads.iter().map(|ads| ads.cluster.clone())).collect()
    }

    /// Reads the resource files that the bootstrap names, those that these name, and so on.
    fn read_files(&mut self) -> Result<(), Diagnostics> {
        let mut read: BTreeSet<PathBuf> = BTreeSet::new();
        loop {
            let references = self.resources.references();
            let maps = [&references.routes, &references.endpoints, &references.secrets];
            let sources = maps.into_iter().flat_map(|map| map.values());
            let sources = sources.chain(&self.dynamic.lds).chain(&self.dynamic.cds);
            let new: BTreeSet<PathBuf> = sources
                .filter_map(|source| match source {
                    ConfigSource::File(path) if !read.contains(path) => Some(path.clone()),
                    _ => None,
                })
                .collect();
            if new.is_empty() {
                break;
            }
            for path in new {
                self.read_file(&path)?;
                read.insert(path);
            }
        }
        self.files = read.into_iter().collect();
        // Clusters on Unix sockets may be named as control planes by resources from control planes.
        let clusters = self.resources.clusters.iter();
        let on_sockets = clusters.filter(|(_, cluster)| cluster.is_on_unix_sockets());
        let on_sockets: BTreeSet<_> = on_sockets.map(|(name, _)| name.clone()).collect();
        self.process.control_planes = self.control_planes().into_iter().chain(on_sockets).collect();
        Ok(())
    }

    fn read_file(&mut self, path: &Path) -> Result<(), Diagnostics> {
        let origin = Origin::file(&path.display().to_string());
        let root = parse(&read_text(path)?, &origin)?;
        let reader = reader(origin.clone());
        let field = reader.root(&root, "");
        let found = field.message(&schema::DISCOVERY_RESPONSE).and_then(|message| {
            message.string("version_info");
            let items = message.list("resources");
            items
                .iter()
                .map(|item| Some((kind(item)?, item.any()?.1.node().clone(), item.path().to_owned())))
                .collect()
        });
        let (items, warnings): (Vec<(ResourceType, Node, String)>, _) = reader.finish(found)?;
        self.warnings.extend(warnings);
        for (kind, node, path) in items {
            let read = read_at(kind, &node, origin.clone(), &path)?;
            self.warnings.extend(read.warnings.clone());
            self.resources.insert(read);
        }
        Ok(())
    }
}

fn kind(field: &Field<'_>) -> Option<ResourceType> {
    let (name, field) = field.any()?;
    match ResourceType::from_type_url(name) {
        Some(kind) => Some(kind),
        None => field.fail(format!("{name} is not a supported resource")),
    }
}
