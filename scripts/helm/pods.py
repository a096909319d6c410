"""Prints the pods that the workloads of manifests would create: manifests on standard input, pods on standard output."""

import sys

import yaml

for document in yaml.safe_load_all(sys.stdin):
    template = (document or {}).get("spec", {}).get("template")
    if template:
        metadata = {**template["metadata"], "name": document["metadata"]["name"]}
        print("---")
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}, sys.stdout)
