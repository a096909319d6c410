"""Checks the Grafana dashboard and the alerts with a Prometheus that scrapes gateways: check.py PROMETHEUS

Every metric that they name is in the reference, every alert is tested and evaluates without an error, and every query of the
dashboard returns data, or belongs to an event that has not occurred.
"""

import json
import pathlib
import re
import sys
import urllib.parse
import urllib.request

import yaml

# Queries of these metrics are empty until a failure occurs, or a feature is used that the test does not configure.
NEEDS_AN_EVENT = {
    "quadrille_handshakes_refused_total": "an overload",
    "quadrille_key_shed_total": "a full queue",
    "quadrille_key_withdrawn_total": "a client that leaves while its operation waits",
    "quadrille_accept_pauses_total": "too few file descriptors",
    "quadrille_idle_connections_closed_total": "too few file descriptors",
    "quadrille_early_data_total": "a client with early data",
    "quadrille_keyless_failures_total": "key servers that are all away",
    "quadrille_keyless_hedges_total": "a slow key server",
    "quadrille_keyless_fallbacks_total": "a fallback key",
    "quadrille_keyserver_refused_connections_total": "a client without a certificate",
    "quadrille_crl_next_update_seconds": "a certificate revocation list",
    "quadrille_xds_updates_total": "a control plane",
    "quadrille_xds_connected": "a control plane",
    "quadrille_quic_handshakes_total": "HTTP/3",
    "quadrille_quic_retries_total": "HTTP/3",
    "quadrille_ocsp_fetches_total": "OCSP",
    "process_start_time_seconds": "a restart",
}
SERIES = re.compile(r"\b(?:quadrille|process)_[a-z_]+")

failed = 0


def main() -> None:
    prometheus = sys.argv[1]
    dashboard = json.loads(pathlib.Path("deploy/grafana/quadrille.json").read_text())
    rules = yaml.safe_load(pathlib.Path("deploy/prometheus/quadrille.rules.yml").read_text())
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    queries = queries_of(dashboard)
    metrics_are_known([rule["expr"] for rule in alerts] + [query for _, query in queries])
    alerts_are_tested(alerts)
    alerts_are_evaluated(prometheus, alerts)
    panels_are_whole(dashboard["panels"])
    queries_return_data(prometheus, queries)
    sys.exit(1 if failed else 0)


def complain(text: str) -> None:
    global failed
    failed += 1
    print(f"FAILED: {text}")


def queries_of(dashboard: dict) -> list[tuple[str, str]]:
    """Yields title and query, with Grafana's variables replaced."""
    panels = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    panels += [(one["name"], one["expr"]) for one in dashboard["annotations"]["list"]]
    values = {"$__rate_interval": "10s", "$job": ".*", "$instance": ".*"}
    return [(title, re.sub(r"\$\w+", lambda name: values[name[0]], query)) for title, query in panels]


def metrics_are_known(expressions: list[str]) -> None:
    pages = [(pathlib.Path("docs/reference") / page).read_text() for page in ("metrics.md", "xds.md")]
    known = set(re.findall(r"^\| `(\w+)`", "\n".join(pages), re.MULTILINE))
    for expression in expressions:
        for name in SERIES.findall(expression):
            if name not in known and re.sub("_(bucket|sum|count)$", "", name) not in known:
                complain(f"{name} is in no reference: {expression}")


def alerts_are_tested(alerts: list[dict]) -> None:
    tests = pathlib.Path("deploy/prometheus/tests.yml").read_text()
    for rule in alerts:
        if f'alertname="{rule["alert"]}"' not in tests:
            complain(f"{rule['alert']} is not in tests.yml")


def alerts_are_evaluated(prometheus: str, alerts: list[dict]) -> None:
    groups = ask(prometheus, "rules")["groups"]
    healthy = [rule["name"] for group in groups for rule in group["rules"] if rule["health"] == "ok"]
    if sorted(healthy) != sorted(rule["alert"] for rule in alerts):
        complain(f"Prometheus evaluates {healthy} only")
    firing = [rule["name"] for group in groups for rule in group["rules"] if rule["state"] == "firing"]
    # The test's certificates, with the CA, are valid for two days, and one of its endpoints is down.
    expected = {"QuadrilleCertificateExpiresSoon", "QuadrilleCaExpiresSoon", "QuadrilleUpstreamServerDown"}
    if set(firing) - expected:
        complain(f"these alerts fire: {firing}")


def panels_are_whole(panels: list[dict]) -> None:
    taken: dict[tuple[int, int], str] = {}
    if len({panel["id"] for panel in panels}) != len(panels):
        complain("two panels have one id")
    for panel in panels:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                if x >= 24 or (x, y) in taken:
                    complain(f"{panel['title']} overlaps {taken.get((x, y), 'the edge')}")
                    return
                taken[x, y] = panel["title"]


def queries_return_data(prometheus: str, queries: list[tuple[str, str]]) -> None:
    for title, query in queries:
        found = [one for one in ask(prometheus, "query", query=query)["result"] if one["value"][1] != "NaN"]
        needs = {name: NEEDS_AN_EVENT[name] for name in SERIES.findall(query) if name in NEEDS_AN_EVENT}
        if found:
            print(f"{title}: {len(found)} series, such as {found[0]['value'][1]}")
        elif needs:
            print(f"{title}: empty without {', '.join(needs.values())}")
        else:
            complain(f"{title} is empty: {query}")


def ask(prometheus: str, what: str, **parameters: str) -> dict:
    where = f"{prometheus}/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(where, timeout=30) as answer:
        return json.load(answer)["data"]


main()
