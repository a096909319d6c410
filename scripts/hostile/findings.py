"""findings.py testssl|sslyze FILE: prints the findings in a scanner's JSON output, one per line.

ACCEPTED lists ignored findings with the reason: the certificates are created for the run, by an untrusted CA.
"""

import json
import sys

ACCEPTED = {
    "cert_chain_of_trust": "the CA is created for the run",
    "cert_trust": "the CA is created for the run",
    "cert_notAfter": "the certificate is created for the run",
    "cert_expirationStatus": "the certificate is created for the run",
    "cert_revocation": "there is neither a CRL nor OCSP for the certificate",
    "cert_crlDistributionPoints": "there is neither a CRL nor OCSP for the certificate",
    "cert_ocspURL": "there is neither a CRL nor OCSP for the certificate",
    "OCSP_stapling": "there is neither a CRL nor OCSP for the certificate",
    "cipher_order": "AEADs are of equal preference, so that clients without AES in hardware get ChaCha20-Poly1305",
    "DNS_CAArecord": "localhost has no CAA record",
    "HSTS": "a header that is the site's to send",
    "security_headers": "headers that are the site's to send",
    "overall_grade": "says again what the others say",
    "grade_cap_reason": "says again what the others say",
    "engine_problem": "of testssl.sh itself",
    "scanProblem": "of testssl.sh itself: a service that is not HTTP, or wants a certificate",
}


def testssl(report):
    """Returns findings worse than LOW, and LOW ones unless accepted by name."""
    for entry in report:
        name = entry["id"].split(" ")[0]
        if entry["severity"] in ("LOW", "MEDIUM", "HIGH", "CRITICAL", "FATAL") and name not in ACCEPTED:
            yield f"{entry['id']}: {entry['finding']}"


def sslyze(report):
    """Returns old protocols, suites without forward secrecy or authentication, and known vulnerabilities."""
    results = report["server_scan_results"]
    if not results or results[0]["connectivity_status"] != "COMPLETED":
        yield f"no connection: {results[0]['connectivity_error_trace'] if results else 'no result'}"
        return
    scan = results[0]["scan_result"]
    for name in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1"):
        for suite in accepted(scan, f"{name}_cipher_suites"):
            yield f"{name} is accepted, with {suite}"
    for suite in accepted(scan, "tls_1_2_cipher_suites"):
        if "ECDHE" not in suite or "GCM" not in suite and "CHACHA20" not in suite:
            yield f"TLS 1.2 with {suite}"
    holes = {
        "heartbleed": "is_vulnerable_to_heartbleed",
        "openssl_ccs_injection": "is_vulnerable_to_ccs_injection",
        "tls_compression": "supports_compression",
        "session_renegotiation": "is_vulnerable_to_client_renegotiation_dos",
    }
    for name, key in holes.items():
        if result(scan, name).get(key):
            yield f"{name}: {key}"
    if result(scan, "robot").get("robot_result", "").startswith("VULNERABLE"):
        yield "ROBOT"
    if result(scan, "tls_fallback_scsv").get("supports_fallback_scsv") is False:
        yield "no TLS_FALLBACK_SCSV"


def result(scan, name):
    return (scan.get(name) or {}).get("result") or {}


def accepted(scan, name):
    return [suite["cipher_suite"]["name"] for suite in result(scan, name).get("accepted_cipher_suites", [])]


if __name__ == "__main__":
    with open(sys.argv[2], encoding="utf-8") as file:
        print("\n".join({"testssl": testssl, "sslyze": sslyze}[sys.argv[1]](json.load(file))))
