//! The workspace's crates and their dependencies.

use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
};

/// One workspace member.
#[derive(Clone, Debug, Default)]
pub struct Crate {
    /// Package name.
    pub name: String,
    /// Folder, relative to the repository's root.
    pub folder: PathBuf,
    /// Packages named by its manifest, of every kind: normal, build and dev.
    pub named: BTreeSet<String>,
    /// Packages linked into its output: the transitive normal dependencies. Build scripts, dependencies of procedural
    /// macros and tests are left out.
    pub linked: BTreeSet<String>,
}

/// Folders of the workspaces. The PHP extension has its own workspace, because it needs PHP's headers.
const WORKSPACES: &[&str] = &["", "packages/php/extension"];

/// Reads the members of all workspaces with `cargo metadata`, for this machine's platform. On a new clone cargo
/// fetches dependencies, which the build needs anyway.
pub fn members() -> Vec<Crate> {
    WORKSPACES.iter().flat_map(|workspace| members_of(&crate::root().join(workspace))).collect()
}

fn members_of(workspace: &Path) -> Vec<Crate> {
    let metadata = metadata(workspace);
    let names: BTreeMap<&str, &str> = array(&metadata["packages"])
        .map(|package| (string(&package["id"]), string(&package["name"])))
        .collect();
    let edges: BTreeMap<&str, Vec<&str>> = array(&metadata["resolve"]["nodes"])
        .map(|node| (string(&node["id"]), normal_dependencies(node)))
        .collect();
    let root = crate::root();

    let member_ids: BTreeSet<&str> = array(&metadata["workspace_members"]).map(string).collect();
    array(&metadata["packages"])
        .filter(|package| member_ids.contains(string(&package["id"])))
        .map(|package| Crate {
            name: string(&package["name"]).to_owned(),
            folder: folder(package, &root),
            named: array(&package["dependencies"])
                .map(|dependency| string(&dependency["name"]).to_owned())
                .collect(),
            linked: reachable(string(&package["id"]), &edges)
                .into_iter()
                .map(|id| names[id].to_owned())
                .collect(),
        })
        .collect()
}

fn metadata(workspace: &Path) -> Value {
    let platform = host();
    let output =
        cargo(workspace, &["metadata", "--locked", "--format-version=1", "--filter-platform", &platform]);
    serde_json::from_str(&output).expect("cargo metadata prints JSON")
}

fn host() -> String {
    let version = cargo(&crate::root(), &["--version", "--verbose"]);
    version.lines().find_map(|line| line.strip_prefix("host: ")).expect("cargo names its host").to_owned()
}

fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output =
        Command::new(cargo).args(arguments).current_dir(folder).output().expect("cargo can be started");
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

fn folder(package: &Value, root: &Path) -> PathBuf {
    let manifest = Path::new(string(&package["manifest_path"]));
    let folder = manifest.parent().expect("a manifest is in a folder");
    folder.strip_prefix(root).expect("members are below the repository's root").to_owned()
}

fn normal_dependencies(node: &Value) -> Vec<&str> {
    array(&node["deps"])
        .filter(|dependency| array(&dependency["dep_kinds"]).any(|kind| kind["kind"].is_null()))
        .map(|dependency| string(&dependency["pkg"]))
        .collect()
}

/// Returns all nodes reachable from `start`, without `start` itself.
fn reachable<'a>(start: &'a str, edges: &BTreeMap<&'a str, Vec<&'a str>>) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(id) = open.pop() {
        let next = edges.get(id).into_iter().flatten();
        open.extend(next.filter(|id| seen.insert(**id)));
    }
    seen
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().expect("cargo metadata: an array").iter()
}

fn string(value: &Value) -> &str {
    value.as_str().expect("cargo metadata: a string")
}
