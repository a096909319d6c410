"""Validates manifests from standard input strictly with a kube-apiserver: apply.py URL TOKEN NAMESPACE [store]

Without `store` they are not stored.

Equivalent to `kubectl apply --server-side --dry-run=server --validate=strict`, for machines without kubectl.
"""

import json
import ssl
import sys
import urllib.error
import urllib.request

import yaml

server, token, namespace, *stored = sys.argv[1:]
dry_run = "" if stored else "dryRun=All&"
# The server belongs to the test, on loopback.
context = ssl._create_unverified_context()


def main() -> None:
    refused = 0
    documents = [document for document in yaml.safe_load_all(sys.stdin) if document]
    for document in documents:
        what = f"{document['kind']} {document['metadata']['name']}"
        try:
            request("PATCH", f"{path(document)}?{dry_run}fieldValidation=Strict&fieldManager=test&force=true", document)
            print(f"valid: {what}")
        except urllib.error.HTTPError as error:
            refused += 1
            print(f"REFUSED: {what}: {json.load(error)['message']}")
    if refused or not documents:
        sys.exit(f"{refused} of {len(documents)} objects were refused")


def path(document: dict) -> str:
    version = document["apiVersion"]
    group = f"/apis/{version}" if "/" in version else f"/api/{version}"
    (resource,) = (
        one for one in request("GET", group)["resources"] if one["kind"] == document["kind"] and "/" not in one["name"]
    )
    where = f"/namespaces/{document['metadata'].get('namespace', namespace)}" if resource["namespaced"] else ""
    return f"{group}{where}/{resource['name']}/{document['metadata']['name']}"


def request(method: str, where: str, body: dict | None = None) -> dict:
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    if body is not None:
        headers["Content-Type"] = "application/apply-patch+yaml"
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(server + where, data, headers, method=method)
    with urllib.request.urlopen(asked, context=context, timeout=30) as answer:
        return json.load(answer)


main()
