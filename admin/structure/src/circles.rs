//! Import cycles among the modules of a crate.
//!
//! Each folder is checked separately: its nodes are its files and its folders, a folder with all its content, and
//! `mod.rs` (or `lib.rs`, `main.rs`) as a file. An arrow leads to the definition of a name: a `pub use` in a `mod.rs`
//! counts as the file that defines the name. A cycle of files anywhere in the crate is a cycle in the smallest folder
//! that contains them. Names used only by tests do not count.

use crate::paths::{self, Name, Source};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

/// Segments below the crate's root.
type Module = Vec<String>;

/// Nodes of one folder, each with the nodes that it names, and an example.
type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// Returns every cycle among these sources, given by their paths below `src/`, with its arrows.
pub fn circles(sources: &[(PathBuf, String)]) -> Vec<String> {
    let krate = Crate::read(sources);
    let mut folders: BTreeMap<Module, Arrows> = BTreeMap::new();
    for (from, source) in &krate.modules {
        for name in source.names.iter().filter(|name| !name.in_test && name.exported_as.is_none()) {
            for to in krate.definitions(from, name) {
                krate.draw(from, &to, name, &mut folders);
            }
        }
    }
    folders.iter().flat_map(|(folder, arrows)| circles_of(folder, arrows)).collect()
}

struct Crate {
    modules: BTreeMap<Module, Source>,
}

impl Crate {
    fn read(sources: &[(PathBuf, String)]) -> Self {
        let read = |(file, text): &(PathBuf, String)| {
            let module = paths::module_of(file);
            let source = paths::read(text, &module);
            (module.into_iter().map(str::to_owned).collect::<Module>(), source)
        };
        let mut modules: BTreeMap<Module, Source> = sources.iter().map(read).collect();
        let tests: Vec<Module> = modules
            .iter()
            .flat_map(|(module, source)| source.test_modules.iter().map(|name| child(module, name)))
            .collect();
        modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        Self { modules }
    }

    /// Returns the modules that may define the name.
    fn definitions(&self, from: &Module, name: &Name) -> BTreeSet<Module> {
        let mut found = BTreeSet::new();
        let segments: Vec<&str> = name.path.split("::").collect();
        match segments[0] {
            "crate" => self.follow(&[], &segments[1..], &mut found, &mut BTreeSet::new()),
            first if self.modules.contains_key(&child(from, first)) => {
                self.follow(from, &segments, &mut found, &mut BTreeSet::new());
            }
            _ => {}
        }
        found
    }

    /// Follows a path down from `module`, and through re-exports.
    fn follow<'a>(
        &'a self,
        module: &[String],
        rest: &[&'a str],
        found: &mut BTreeSet<Module>,
        seen: &mut BTreeSet<(Module, &'a str)>,
    ) {
        let Some((&first, below)) = rest.split_first() else {
            found.insert(module.to_vec());
            return;
        };
        let inner = child(module, first);
        if self.modules.contains_key(&inner) {
            return self.follow(&inner, below, found, seen);
        }
        let Some(source) = self.modules.get(module) else { return };
        if source.defined.contains(first) || first == "*" || !seen.insert((module.to_vec(), first)) {
            found.insert(module.to_vec());
            return;
        }
        let exports = |wanted: &str| {
            let exported =
                source.names.iter().filter(move |name| name.exported_as.as_deref() == Some(wanted));
            exported.map(|name| name.path.split("::").collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        let mut behind = exports(first);
        if behind.is_empty() {
            behind = exports("*");
            behind.iter_mut().for_each(|path| _ = path.pop());
            behind.retain(|path| self.may_define(module, path, first));
            behind.iter_mut().for_each(|path| path.push(first));
        }
        if behind.is_empty() {
            found.insert(module.to_vec());
        }
        for path in behind {
            match path[0] {
                "crate" => self.follow(&[], &path[1..], found, seen),
                own if self.modules.contains_key(&child(module, own)) => {
                    self.follow(module, &path, found, seen);
                }
                // Part of another crate.
                _ => {}
            }
        }
    }

    /// Returns whether the module at this path, named in `module`, may define or re-export `name`.
    fn may_define(&self, module: &[String], path: &[&str], name: &str) -> bool {
        let base = if path[0] == "crate" { Module::new() } else { module.to_vec() };
        let below = path.iter().filter(|segment| **segment != "crate").map(|&segment| segment.to_owned());
        let target: Module = base.into_iter().chain(below).collect();
        self.modules.get(&target).is_some_and(|source| {
            source.defined.contains(name)
                || source.names.iter().any(|known| {
                    known.exported_as.as_deref().is_some_and(|exported| exported == name || exported == "*")
                })
        })
    }

    /// Adds the arrow between two modules, in the smallest folder that contains both.
    fn draw(&self, from: &Module, to: &Module, name: &Name, folders: &mut BTreeMap<Module, Arrows>) {
        if from == to {
            return;
        }
        let common = from.iter().zip(to).take_while(|(one, other)| one == other).count();
        let folder = from[..common].to_vec();
        let node = |module: &Module| match module.get(common) {
            Some(node) => node.clone(),
            None if folder.is_empty() => "the crate's root".to_owned(),
            None => "mod".to_owned(),
        };
        let example = format!("{} names {}", shown(from), name.path);
        folders
            .entry(folder.clone())
            .or_default()
            .entry(node(from))
            .or_default()
            .entry(node(to))
            .or_insert(example);
    }
}

fn circles_of(folder: &Module, arrows: &Arrows) -> Vec<String> {
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        arrows.keys().map(|node| (node, reachable(node, arrows))).collect();
    let reaches = |from: &String, to: &String| reached.get(from).is_some_and(|reached| reached.contains(to));
    let mut told = BTreeSet::new();
    let mut circles = Vec::new();
    for node in arrows.keys().filter(|node| reaches(node, node)) {
        if told.contains(node) {
            continue;
        }
        let circle: BTreeSet<&String> =
            arrows.keys().filter(|other| reaches(node, other) && reaches(other, node)).collect();
        let inside = circle.iter().flat_map(|&from| {
            let to = arrows[from].iter().filter(|(to, _)| circle.contains(to));
            to.map(move |(to, example)| format!("\n    {from} -> {to}: {example}"))
        });
        let names: Vec<&str> = circle.iter().map(|name| name.as_str()).collect();
        circles.push(format!("{}: {}{}", shown(folder), names.join(", "), inside.collect::<String>()));
        told.extend(circle);
    }
    circles
}

fn reachable<'a>(start: &'a str, arrows: &'a Arrows) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(node) = open.pop() {
        let next = arrows.get(node).into_iter().flat_map(BTreeMap::keys);
        open.extend(next.filter(|next| seen.insert(*next)).map(String::as_str));
    }
    seen
}

fn child(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

fn shown(module: &[String]) -> String {
    if module.is_empty() { "src".to_owned() } else { format!("src/{}", module.join("/")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(sources: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<_> =
            sources.iter().map(|(file, text)| (PathBuf::from(file), (*text).to_owned())).collect();
        super::circles(&sources)
    }

    /// Returns the members of the cycles, without arrows.
    fn heads(sources: &[(&str, &str)]) -> Vec<String> {
        let first_line = |circle: String| circle.lines().next().unwrap_or_default().to_owned();
        circles(sources).into_iter().map(first_line).collect()
    }

    #[test]
    fn two_files_that_name_each_other_are_a_circle() {
        let down = ("b.rs", "pub fn g() {}");
        let up = ("b.rs", "pub fn g() { crate::a::f() }");
        let rest = [("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::g; pub fn f() { g() }")];
        assert_eq!(circles(&[rest[0], rest[1], down]), Vec::<String>::new());
        let found = circles(&[rest[0], rest[1], up]);
        assert_eq!(
            found,
            ["src: a, b\n    a -> b: src/a names crate::b::g\n    b -> a: src/b names crate::a::f"]
        );
    }

    #[test]
    fn folders_are_nodes_with_all_that_lies_in_them() {
        let sources = [
            ("lib.rs", "mod low; mod high;"),
            ("low/mod.rs", "mod one; mod two;"),
            ("low/one.rs", "pub struct One;"),
            ("low/two.rs", "use crate::high::High; pub struct Two(High);"),
            ("high/mod.rs", "mod only; pub use only::High;"),
            ("high/only.rs", "pub struct High; use crate::low::one::One;"),
        ];
        assert_eq!(heads(&sources), ["src: high, low"]);
    }

    #[test]
    fn a_folder_has_circles_of_its_own() {
        let sources = [
            ("lib.rs", "mod tls;"),
            ("tls/mod.rs", "mod a; mod b; mod c;"),
            ("tls/a.rs", "use super::b::B; pub struct A;"),
            ("tls/b.rs", "use super::c::C; pub struct B;"),
            ("tls/c.rs", "pub fn c() -> super::a::A { todo!() } pub struct C;"),
        ];
        assert_eq!(heads(&sources), ["src/tls: a, b, c"]);
    }

    #[test]
    fn what_is_handed_on_belongs_to_the_file_behind_it() {
        let root = ("lib.rs", "pub use a::{A, Again as Other}; mod a; mod b;");
        let a = ("a.rs", "pub struct A; pub struct Again;");
        assert_eq!(heads(&[root, a, ("b.rs", "use crate::{A, Other};")]), Vec::<String>::new());
        let a = ("a.rs", "pub struct A; pub struct Again; use crate::b::B;");
        assert_eq!(heads(&[root, a, ("b.rs", "use crate::Other; pub struct B;")]), ["src: a, b"]);
        let all = ("lib.rs", "pub use a::*; mod a; mod b;");
        assert_eq!(heads(&[all, a, ("b.rs", "use crate::Again; pub struct B;")]), ["src: a, b"]);
    }

    #[test]
    fn what_a_mod_file_defines_is_its_own() {
        let root = ("lib.rs", "mod a; use a::A; pub struct Whole(A);");
        assert_eq!(
            heads(&[root, ("a.rs", "pub struct A; fn f(_: crate::Whole) {}")]),
            ["src: a, the crate's root"]
        );
        let folder = ("up/mod.rs", "mod a; pub struct Whole(a::A);");
        let a = ("up/a.rs", "pub struct A; fn f(_: super::Whole) {}");
        assert_eq!(heads(&[("lib.rs", "mod up;"), folder, a]), ["src/up: a, mod"]);
    }

    #[test]
    fn tests_may_name_what_they_want() {
        let root = ("lib.rs", "mod a; mod b; #[cfg(test)] mod suite;");
        let a = ("a.rs", "use crate::b::B; pub struct A;");
        let b = (
            "b.rs",
            "pub struct B; #[cfg(test)] mod tests { use crate::a::A; } #[test] fn t() { crate::a::A; }",
        );
        let suite = ("suite.rs", "use crate::a::A; pub struct S;");
        assert_eq!(heads(&[root, a, b, suite]), Vec::<String>::new());
        let later = ("b.rs", "pub struct B; #[cfg(test)] mod tests {} use crate::a::A;");
        assert_eq!(heads(&[root, a, later, suite]), ["src: a, b"]);
    }
}
