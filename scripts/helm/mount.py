"""Processes rendered manifests like a kubelet: writes the files of a container, and prints its command line.

    helm template ... | mount.py KIND NAME SECRETS DIRECTORY

writes the projected volume at /etc/quadrille of the workload KIND NAME into DIRECTORY, in the kubelet's layout (a folder that
`..data` points to, so that all files change atomically), with Secrets from the folders SECRETS/NAME. A second call renews
them. Prints the container's arguments, one per line, with DIRECTORY in place of /etc/quadrille.
"""

import os
import pathlib
import sys
import time

import yaml

MOUNT = "/etc/quadrille"


def main() -> None:
    kind, name, secrets, directory = sys.argv[1:]
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    pod = find(documents, kind, name)
    pod = pod["spec"]["template"]["spec"] if "template" in pod["spec"] else pod["spec"]
    for volume in pod.get("volumes", []):
        write(files(volume["projected"]["sources"], documents, pathlib.Path(secrets)), pathlib.Path(directory))
    for argument in pod["containers"][0]["args"]:
        print(argument.replace(MOUNT, directory))


def find(documents: list, kind: str, name: str) -> dict:
    found = [one for one in documents if one["kind"] == kind and one["metadata"]["name"] == name]
    if len(found) != 1:
        sys.exit(f"mount.py: {len(found)} of {kind} {name}")
    return found[0]


def files(sources: list, documents: list, secrets: pathlib.Path) -> dict[str, bytes]:
    """Returns the content of a projected volume's sources, by path."""
    content = {}
    for source in sources:
        ((kind, reference),) = source.items()
        for item in reference["items"]:
            if kind == "secret":
                value = (secrets / reference["name"] / item["key"]).read_bytes()
            else:
                value = find(documents, "ConfigMap", reference["name"])["data"][item["key"]].encode()
            if item["path"] in content:
                sys.exit(f"mount.py: duplicate path {item['path']}")
            content[item["path"]] = value
    return content


def write(content: dict[str, bytes], directory: pathlib.Path) -> None:
    """Writes like the kubelet's atomic_writer.go."""
    new = directory / f"..{time.time_ns()}"
    for path, value in content.items():
        file = new / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(value)
        file.chmod(0o440)
        link = directory / path.split("/")[0]
        if not link.is_symlink():
            link.symlink_to(f"..data/{link.name}")
    temporary = directory / "..data_tmp"
    temporary.symlink_to(new.name)
    os.replace(temporary, directory / "..data")


main()
