//! Memory that is available to this process: the limit of its control groups, or else the machine's memory.

use std::{
    fs,
    path::{Component, Path, PathBuf},
};

/// Returns the number of bytes; `None` if it is unknown.
pub(super) fn available() -> Option<usize> {
    available_in(Path::new("/"))
}

/// Returns the least of the limits of all control groups and the memory of the machine, with this root of the file
/// system.
fn available_in(root: &Path) -> Option<usize> {
    group_limits(root).chain(machine(root)).min()
}

fn machine(root: &Path) -> Option<usize> {
    let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// Returns the limits of the process's control groups, in both versions of the kernel's interface.
fn group_limits(root: &Path) -> impl Iterator<Item = usize> {
    let text = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let files: Vec<_> = text.lines().filter_map(Group::parse).flat_map(|group| group.files(root)).collect();
    files.into_iter().filter_map(|file| limit(&fs::read_to_string(file).ok()?))
}

/// Parses a limit; `None` for `max`.
fn limit(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

/// A control group of the process.
struct Group<'a> {
    /// Folders where the hierarchy may be mounted.
    mounts: &'static [&'static str],
    file: &'static str,
    path: &'a Path,
}

impl<'a> Group<'a> {
    /// Parses a line of `/proc/self/cgroup` (cgroups(7)), of version 2 or of version 1's memory controller.
    fn parse(line: &'a str) -> Option<Self> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let path = Path::new(path);
        if controllers.is_empty() {
            return Some(Self {
                mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
                file: "memory.max",
                path,
            });
        }
        controllers.split(',').any(|controller| controller == "memory").then_some(Self {
            mounts: &["sys/fs/cgroup/memory"],
            file: "memory.limit_in_bytes",
            path,
        })
    }

    /// Returns the files with the limits of the group and of all groups that contain it. In a container, the path may
    /// be that of the host, and the mounted root is the container's group.
    fn files(&self, root: &Path) -> Vec<PathBuf> {
        let path: PathBuf =
            self.path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
        let folders = |mount: &&str| {
            let mount = root.join(mount);
            path.ancestors().map(|folder| mount.join(folder).join(self.file)).collect::<Vec<_>>()
        };
        self.mounts.iter().flat_map(folders).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: usize = 4 << 30;

    /// Returns the available memory on a machine with these groups and these files.
    fn with(groups: &str, files: &[(&str, &str)]) -> Option<usize> {
        let root = tempfile::tempdir().expect("a folder");
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
            fs::write(file, text).expect("a file");
        };
        write("proc/self/cgroup", groups);
        write("proc/meminfo", "MemTotal:        4194304 kB\nMemFree:          100 kB\n");
        files.iter().for_each(|(file, text)| write(file, text));
        available_in(root.path())
    }

    #[test]
    fn version_2() {
        let max = |limit| with("0::/a/b\n", &[("sys/fs/cgroup/a/b/memory.max", limit)]);
        assert_eq!(max("536870912\n"), Some(512 << 20));
        assert_eq!(max("max\n"), Some(MACHINE));
        assert_eq!(max("99999999999999\n"), Some(MACHINE), "more than the machine has");
        assert_eq!(max("nonsense\n"), Some(MACHINE));
    }

    #[test]
    fn a_group_is_limited_by_those_that_contain_it() {
        let files = [
            ("sys/fs/cgroup/pod/memory.max", "268435456\n"),
            ("sys/fs/cgroup/pod/container/memory.max", "max\n"),
        ];
        assert_eq!(with("0::/pod/container\n", &files), Some(256 << 20));
    }

    #[test]
    fn a_container_sees_its_group_as_the_root() {
        let root = [("sys/fs/cgroup/memory.max", "268435456\n")];
        assert_eq!(with("0::/\n", &root), Some(256 << 20));
        assert_eq!(with("0::/../../other\n", &root), Some(256 << 20), "the path is outside its namespace");
        let root = [("sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n")];
        assert_eq!(with("5:memory:/docker/0123456789\n", &root), Some(256 << 20), "the path is the host's");
    }

    #[test]
    fn version_1() {
        let groups = "9:name=systemd:/x\n4:cpu,memory:/y\n0::/z\n";
        let limit = |limit| with(groups, &[("sys/fs/cgroup/memory/y/memory.limit_in_bytes", limit)]);
        assert_eq!(limit("1073741824\n"), Some(1 << 30));
        assert_eq!(limit("9223372036854771712\n"), Some(MACHINE), "no limit");
    }

    #[test]
    fn without_groups_it_is_the_machines() {
        assert_eq!(with("", &[]), Some(MACHINE));
        assert_eq!(available_in(Path::new("/nonexistent")), None);
        assert!(available().is_some_and(|bytes| bytes > 0));
    }
}
