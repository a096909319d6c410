"""claim-target.py: makes it safe, and quick, that all clones share one target directory.

Cargo knows a workspace's own crates by their path inside the workspace, and judges them by the age of their files: after another
clone has built, it would take that clone's newer result for this one's. So when the last builder was another clone, each file here
that is equal to that clone's gets its time, by which cargo judges it as it would judge it there, and each other file becomes new.
So does a folder, which build scripts may name, if it has other entries.
"""

import filecmp
import os
import sys
from pathlib import Path

# Not a part of the sources: at any depth, and at the top.
SKIPPED = {".git", "node_modules"}
BUILT = {Path("bin"), Path("target")}


def entries():
    """Each file and each folder."""
    for folder, folders, names in os.walk("."):
        folders[:] = [name for name in folders if name not in SKIPPED and Path(folder, name) not in BUILT]
        yield from (Path(folder, name) for name in names)
        yield Path(folder)


def are_equal(here, there):
    if here.is_dir():
        return there.is_dir() and set(os.listdir(here)) - SKIPPED == set(os.listdir(there)) - SKIPPED
    return there.is_file() and filecmp.cmp(here, there, shallow=False)


def main():
    target = Path(sys.argv[1])
    owner = target / "last-clone"
    here = Path.cwd()
    last = Path(owner.read_text().strip()) if owner.exists() else None
    if last == here:
        return
    for entry in entries():
        if entry.is_symlink():
            continue
        if last and are_equal(entry, last / entry):
            times = (last / entry).stat()
            os.utime(entry, ns=(times.st_atime_ns, times.st_mtime_ns))
        else:
            os.utime(entry)
    target.mkdir(parents=True, exist_ok=True)
    owner.write_text(f"{here}\n")


main()
