//! Call stacks, parsed from the output of `perf script`, and merged into a tree.

use std::collections::BTreeMap;

/// One sample: the call stack of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// Name of the thread.
    pub thread: String,
    /// Frames, from the innermost function outwards.
    pub frames: Vec<Frame>,
}

/// A function on a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function, if the object has a symbol for it.
    pub name: Option<String>,
    /// The program, library or part of the kernel that contains the function.
    pub object: String,
}

impl Frame {
    /// Returns whether the frame is in the kernel: perf writes those objects in brackets.
    pub fn in_kernel(&self) -> bool {
        const IN_USER_SPACE: [&str; 5] = ["[unknown]", "[vdso]", "[stack]", "[heap]", "[uprobes]"];
        self.object.starts_with('[') && !IN_USER_SPACE.contains(&self.object.as_str())
    }

    /// Returns the function's name, or its object.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.object)
    }
}

/// Parses the output of `perf script -F comm,tid,ip,sym,dso`: for each sample a line with thread name and number,
/// then one line per frame, then an empty line. Lines of another form are skipped.
pub fn parse(text: &str) -> Vec<Stack> {
    let mut stacks: Vec<Stack> = Vec::new();
    let mut current: Option<Stack> = None;
    for line in text.lines() {
        if line.trim().is_empty() {
            stacks.extend(current.take());
        } else if line.starts_with(char::is_whitespace) && current.is_some() {
            if let (Some(stack), Some(frame)) = (&mut current, frame(line.trim())) {
                stack.frames.push(frame);
            }
        } else {
            stacks.extend(current.take());
            let thread = line.trim().rsplit_once(char::is_whitespace).map_or(line, |(name, _)| name);
            current = Some(Stack { thread: thread.trim().to_owned(), frames: Vec::new() });
        }
    }
    stacks.extend(current);
    stacks.retain(|stack| !stack.frames.is_empty());
    stacks
}

/// Parses `ADDRESS NAME (OBJECT)`, where name and object may both contain parentheses.
fn frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let rest = rest.strip_suffix(" (deleted))").map_or_else(|| rest.strip_suffix(')'), Some)?;
    let (name, object) = rest.rsplit_once(" (")?;
    let known = name.trim() != "[unknown]";
    // The unwinder failed here.
    if address == u64::MAX && !known {
        return None;
    }
    Some(Frame { name: known.then(|| name.trim().to_owned()), object: object.to_owned() })
}

/// Stacks merged by common prefix, outermost function first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Samples in this function and its callees.
    pub samples: u64,
    /// Whether the function is in the kernel.
    pub in_kernel: bool,
    /// Callees by label.
    pub called: BTreeMap<String, Tree>,
}

impl Tree {
    /// Builds a root whose children are threads.
    pub fn from_stacks(stacks: &[Stack]) -> Self {
        let mut root = Self::default();
        for stack in stacks {
            let mut place = &mut root;
            place.samples += 1;
            place = place.called.entry(stack.thread.clone()).or_default();
            place.samples += 1;
            for frame in stack.frames.iter().rev() {
                place = place.called.entry(frame.label().to_owned()).or_default();
                place.samples += 1;
                place.in_kernel = frame.in_kernel();
            }
        }
        root
    }

    /// Returns the depth in functions.
    pub fn depth(&self) -> usize {
        self.called.values().map(|tree| 1 + tree.depth()).max().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "worker-0 26091 \n\
        \t          c72f87 mlkem::(anonymous namespace)::encrypt_cpa<3> (/usr/bin/quadrille)\n\
        \t          8f420d [unknown] (/usr/lib/libcrypto.so.3)\n\
        \tffffffffffffffff [unknown] ([unknown])\n\
        \n\
        tokio rt worker 7 \n\
        \tffffffff816354f0 tcp_sendmsg ([kernel.kallsyms])\n\
        \t           1234 send (/old/quadrille (deleted))\n\
        \n";

    #[test]
    fn stacks_as_perf_prints_them() {
        let stacks = parse(TEXT);
        assert_eq!(stacks.len(), 2);
        assert_eq!((stacks[0].thread.as_str(), stacks[0].frames.len()), ("worker-0", 2));
        assert_eq!(stacks[0].frames[0].label(), "mlkem::(anonymous namespace)::encrypt_cpa<3>");
        assert_eq!(
            (stacks[0].frames[1].name.as_ref(), stacks[0].frames[1].label()),
            (None, "/usr/lib/libcrypto.so.3")
        );
        assert_eq!(stacks[1].thread, "tokio rt worker");
        assert!(stacks[1].frames[0].in_kernel() && !stacks[1].frames[1].in_kernel());
        assert_eq!(stacks[1].frames[1].object, "/old/quadrille");
    }

    #[test]
    fn noise_is_left_out() {
        assert_eq!(parse(""), []);
        assert_eq!(
            parse("\t 12 main (/bin/true)\n\nworker 1 \n\n"),
            [],
            "frames without a thread, and the reverse"
        );
        assert_eq!(parse("worker 1 \n\tno address here\n"), []);
    }

    #[test]
    fn a_tree_counts_common_beginnings_once() {
        let stack = |names: &[&str]| Stack {
            thread: "worker".into(),
            frames: names
                .iter()
                .map(|name| Frame { name: Some((*name).into()), object: "x".into() })
                .collect(),
        };
        let tree = Tree::from_stacks(&[stack(&["b", "main"]), stack(&["c", "main"]), stack(&["main"])]);
        assert_eq!((tree.samples, tree.depth()), (3, 3));
        let main = &tree.called["worker"].called["main"];
        assert_eq!((main.samples, main.called["b"].samples, main.called.len()), (3, 1, 2));
    }
}
