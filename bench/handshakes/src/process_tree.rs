//! A process and its descendants.

use std::fs;

use anyhow::{Context, Result, ensure};
use nix::unistd::Pid;

/// Returns `root` and its living descendants, from one pass over `/proc`.
///
/// A server with a master and workers has several processes; its cost is the sum.
pub fn process_tree(root: Pid) -> Result<Vec<Pid>> {
    let mut parentage = Vec::new();
    for entry in fs::read_dir("/proc").context("cannot list /proc")? {
        // Processes may end during the pass: one that has ended is not a descendant.
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        parentage.extend(parse_stat(&stat));
    }
    ensure!(parentage.iter().any(|(pid, _)| *pid == root.as_raw()), "process {root} has ended");
    Ok(descend(root.as_raw(), &parentage).into_iter().map(Pid::from_raw).collect())
}

/// Returns process and parent of a line of `/proc/PID/stat`: `PID (name) STATE PPID ...`, where the name may contain
/// spaces and parentheses.
fn parse_stat(line: &str) -> Option<(i32, i32)> {
    let (pid, rest) = line.split_once(' ')?;
    let (_, after_name) = rest.rsplit_once(')')?;
    let parent = after_name.split_whitespace().nth(1)?;
    Some((pid.parse().ok()?, parent.parse().ok()?))
}

fn descend(root: i32, parentage: &[(i32, i32)]) -> Vec<i32> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(parentage.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_with_awkward_names() {
        assert_eq!(parse_stat("17 (nginx) S 1 17 17 0 -1"), Some((17, 1)));
        assert_eq!(parse_stat("18 (a) b (c)) R 17 1 2"), Some((18, 17)));
        assert_eq!(parse_stat("no stat line"), None);
        assert_eq!(parse_stat(""), None);
    }

    #[test]
    fn grandchildren_belong_to_the_tree_and_siblings_do_not() {
        let parentage = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)];
        assert_eq!(descend(10, &parentage), [10, 11, 12]);
    }

    #[test]
    fn this_process_is_in_its_own_tree() {
        let me = Pid::this();
        assert!(process_tree(me).is_ok_and(|tree| tree.contains(&me)));
    }
}
