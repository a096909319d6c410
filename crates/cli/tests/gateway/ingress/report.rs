//! The report: objects that cannot be used, and the exit status.

use super::{Cluster, file_of, ingress, ingress_with, map, run};
use crate::support::comparison::outcome;

#[test]
fn bad_objects_leave_the_others() {
    let large = "x".repeat(900 << 10);
    let objects = [
        ingress("good", "", "a.example", &[("/good", "Prefix", "a")]),
        ingress("other", "", "a.example", &[("/good", "Prefix", "b"), ("/other", "Exact", "b")]),
        ingress("no-service", "", "a.example", &[("/nothing", "Exact", "missing")]),
        ingress("no-port", "", "a.example", &[("/no-port", "Exact", "a")])
            .replace("name: http } } }", "number: 99 } } }"),
        ingress(
            "regex",
            "use-regex: \"true\"",
            "regex.example",
            &[("/a(?!b).*", "ImplementationSpecific", "a"), ("/c", "Prefix", "a")],
        ),
        ingress_with(
            "no-secret",
            "",
            "s.example",
            &[("/", "Prefix", "a")],
            "  tls: [{ hosts: [s.example], secretName: missing }]\n",
        ),
        ingress_with(
            "large",
            "",
            "l.example",
            &[("/", "Prefix", "a")],
            "  tls: [{ hosts: [l.example], secretName: large }]\n",
        ),
        ingress("users", "auth-type: basic\nauth-secret: large", "a.example", &[("/users", "Exact", "a")]),
        map("Secret", "large", &[("tls.crt", &large), ("auth", &large)]),
        ingress("old", "", "a.example", &[("/old", "Exact", "a")])
            .replace("networking.k8s.io/v1", "networking.k8s.io/v1beta1"),
        ingress("no-type", "", "a.example", &[("/no-type", "Sometimes", "a")]),
        ingress("bad-host", "", "a_*.example", &[("/", "Prefix", "a")]),
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: { name: x }\n".to_owned(),
    ];
    let served = Cluster::new().gateway(&objects.concat());
    for (host, path, expected) in [
        ("a.example", "/good", 200),
        ("a.example", "/other", 200),
        ("a.example", "/nothing", 503),
        ("a.example", "/no-port", 503),
        ("a.example", "/users", 503),
        ("a.example", "/old", 404),
        ("regex.example", "/abc", 503),
        ("regex.example", "/c", 200),
        ("s.example", "/", 308),
    ] {
        let found = outcome(served.http(), &("GET", host, path, "")).status;
        assert_eq!(found, expected, "{host}{path}\n{}", served.yaml);
    }
    let report = &served.report;
    for (object, text) in [
        ("other", "Ingress shop/good has this path already"),
        ("no-service", "the Service shop/missing does not exist"),
        ("no-port", "has no port `99`"),
        ("regex", "which has no look-around"),
        ("no-secret", "the Secret shop/missing is not in the input"),
        ("large", "Secret shop/large: `tls.crt`: it does not contain a certificate"),
        ("users", "no user of the Secret shop/large has a hash"),
        ("old", "networking.k8s.io/v1beta1 is not networking.k8s.io/v1"),
        ("no-type", "pathType `Sometimes`"),
        ("bad-host", "is not a host"),
    ] {
        let from = report.split(&format!("Ingress shop/{object} (")).nth(1).unwrap_or_default();
        let of_object = from.split("\nIngress ").next().unwrap_or_default();
        assert!(of_object.contains(text), "{object}: {text}\n{report}");
    }
    assert!(report.contains("not read: objects of kind Deployment"), "{report}");
}

#[test]
fn the_exit_status_tells_what_is_left() {
    let services = Cluster::new().objects();
    let good = ingress("good", "proxy-body-size: 8m", "a.example", &[("/", "Prefix", "a")]);
    let (_kept, path) = file_of(&format!("{services}{good}"));
    let (output, report) = run(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("works: nginx.ingress.kubernetes.io/proxy-body-size\n"), "{report}");
    assert!(
        report.contains(
            "1 of 1 Ingress objects translated; settings: 1 work, 0 work differently, 0 do not work"
        ),
        "{report}"
    );
    let bad = ingress(
        "bad",
        "no-such-thing: x\nlimit-rate: \"5\"\nuse-regex: maybe",
        "a.example",
        &[("/", "Prefix", "a")],
    );
    let (_kept, path) = file_of(&format!("{services}{bad}"));
    let (output, report) = run(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.contains("no-such-thing: not an annotation of ingress-nginx"), "{report}");
    assert!(report.contains("limit-rate: the rate of a response is not limited"), "{report}");
    assert!(report.contains("use-regex: write \"true\" or \"false\""), "{report}");
    let (_kept, path) = file_of("a: [\n");
    let (output, _) = run(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    let (output, _) = run(&["no-such-file.yaml"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn only_objects_of_the_class_are_translated() {
    let services = Cluster::new().objects();
    let of_class = |name: &str, class: &str| {
        ingress(name, "", &format!("{name}.example"), &[("/", "Prefix", "a")])
            .replace("ingressClassName: nginx", &format!("ingressClassName: {class}"))
    };
    let class = |name: &str, controller: &str| {
        format!(
            "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass\nmetadata: {{ name: {name} }}\nspec: {{ controller: {controller} }}\n"
        )
    };
    let objects = [
        services,
        class("public", "k8s.io/ingress-nginx"),
        class("traefik", "traefik.io/ingress-controller"),
        of_class("ours", "public"),
        of_class("theirs", "traefik"),
    ];
    let (_kept, path) = file_of(&objects.concat());
    let (output, report) = run(&[&path.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert!(report.contains("1 of 2 Ingress objects translated"), "{report}");
    assert!(report.contains("it belongs to `traefik`"), "{report}");
}
