//! Outcomes of annotations.

use super::{ingress, translated};
use crate::{
    State,
    annotation::{
        PREFIX,
        table::{ALL, Support, find},
    },
};

#[test]
fn every_annotation_has_its_outcome() {
    // With a value that no module judges, each annotation has the outcome of the table.
    let values = [
        ("auth-tls-secret", "shop/ca"),
        ("enable-access-log", "false"),
        ("enable-opentelemetry", "false"),
        ("enable-modsecurity", "true"),
    ];
    for entry in ALL {
        let value = values.iter().find(|(name, _)| *name == entry.name).map_or("value", |(_, value)| value);
        let translation = translated(&ingress(&format!("{}: \"{value}\"", entry.name)));
        let name = format!("{PREFIX}{}", entry.name);
        let all = translation.report.objects.iter().flat_map(|one| &one.entries);
        let found = all.filter(|one| one.setting == name).collect::<Vec<_>>();
        assert_eq!(found.len(), 1, "{name}");
        let text = &found[0].text;
        match entry.support {
            // The value may be refused: another one works.
            Support::Works => assert!(found[0].state == State::Works || !text.is_empty(), "{name}: {text}"),
            Support::Differs(_) => {
                assert!(found[0].state >= State::Differs || text.is_empty(), "{name}: {text}");
            }
            Support::Refused(_) => assert_eq!(found[0].state, State::Refused, "{name}: {text}"),
        }
    }
    assert!(find("whitelist-source-range").is_some_and(|entry| entry.name == "allowlist-source-range"));
    assert!(find("no-such-thing").is_none());
}

#[test]
fn enough_annotations_work() {
    let carried = ALL.iter().filter(|entry| !matches!(entry.support, Support::Refused(_))).count();
    assert!(carried >= 110, "{carried} of {}", ALL.len());
}

#[test]
fn values_that_are_not_text_are_reported() {
    let translation = translated(&ingress("proxy-read-timeout: 5\nenable-cors: true\nuse-regex: \"true\""));
    let report = translation.report.to_string();
    assert_eq!(report.matches("write it in quotes").count(), 2, "{report}");
}

#[test]
fn settings_of_the_config_map_are_defaults() {
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ingress-nginx-controller, namespace: ingress-nginx }\ndata:\n  \
               proxy-body-size: 20m\n  proxy-read-timeout: \"7\"\n  hsts: \"false\"\n  use-forwarded-headers: \"true\"\n  \
               proxy-real-ip-cidr: 10.0.0.0/8\n  block-user-agents: curl\n  no-such-key: x\n  worker-processes: \"4\"\n  use-gzip: \"true\"\n";
    let translation = translated(&format!("{map}{}", ingress("proxy-read-timeout: \"9\"")));
    for expected in ["body: 20MiB", "read: 9s", "trusted_proxies: [10.0.0.0/8]", "algorithms: [gzip]"] {
        assert!(translation.yaml.contains(expected), "{expected}\n{}", translation.yaml);
    }
    let report = translation.report.to_string();
    assert!(
        report.contains("does not work: block-user-agents: has no equivalent, and restricts access"),
        "{report}"
    );
    assert!(report.contains("does not work: no-such-key: has no equivalent"), "{report}");
    assert!(report.contains("works differently: worker-processes"), "{report}");
}

#[test]
fn a_canary_needs_its_main_ingress() {
    let translation = translated(&ingress("canary: \"true\"\ncanary-weight: \"10\"\nenable-cors: \"true\""));
    let report = translation.report.to_string();
    assert!(report.contains("path a.example/: no Ingress without `canary` has this path"), "{report}");
    assert!(report.contains("enable-cors: no effect on a canary"), "{report}");
}

#[test]
fn secrets_are_not_in_the_report() {
    let secret = "---\napiVersion: v1\nkind: Secret\nmetadata: { name: users, namespace: shop }\nstringData: { auth: \"bob:hunter2\" }\n";
    let translation = translated(&format!("{secret}{}", ingress("auth-type: basic\nauth-secret: users")));
    assert!(!translation.report.to_string().contains("hunter2"));
    assert!(!translation.yaml.contains("hunter2"));
    let objects = super::objects(secret);
    assert!(!format!("{objects:?}").contains("hunter2"));
}

#[test]
fn a_route_that_cannot_be_expressed_is_closed_alone() {
    let bad = ingress(
        "affinity: cookie\nsession-cookie-path: \"/a;b\"\nauth-type: basic\nauth-secret: users\nauth-realm: \"a\\u0001b\"",
    );
    let users = "---\napiVersion: v1\nkind: Secret\nmetadata: { name: users, namespace: shop }\nstringData: { auth: \"bob:$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\" }\n";
    let good = ingress("").replace("a.example", "b.example").replace("name: web", "name: good");
    let translation = translated(&format!("{users}{bad}{good}"));
    assert!(
        translation.yaml.contains("CLOSED: the configuration cannot express this route"),
        "{}",
        translation.yaml
    );
    assert!(translation.report.to_string().contains("Routes (configuration)"), "{}", translation.report);
    assert_eq!(translation.yaml.matches("upstream: shop-app-80").count(), 1, "{}", translation.yaml);
}

#[test]
fn hashes_that_the_gateway_refuses_are_left_out() {
    let secret = |lines: &str| {
        format!(
            "---\napiVersion: v1\nkind: Secret\nmetadata: {{ name: users, namespace: shop }}\nstringData:\n  auth: |\n{lines}"
        )
    };
    let good = "    bob:$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\n";
    for (bad, name) in [
        ("    eve:$2y$05$short\n", "eve"),
        ("    eve:$apr1$7D5ALhiV$2RnQKzs.wB8.uhFjQoGrx.\n", "eve"),
        ("    eve:$6$x$y\n", "eve"),
        ("    eve:plain\n", "eve"),
    ] {
        let ingress = ingress("auth-type: basic\nauth-secret: users");
        let translation = translated(&format!("{}{ingress}", secret(&format!("{good}{bad}"))));
        assert!(
            translation.yaml.contains("bob:$$2y") || translation.yaml.contains("bob:$2y"),
            "{}",
            translation.yaml
        );
        assert!(!translation.yaml.contains(name), "{}", translation.yaml);
        let report = translation.report.to_string();
        assert!(report.contains(&format!("{name} cannot log in")), "{report}");
    }
}

#[test]
fn secrets_of_other_namespaces_need_permission() {
    let users = "---\napiVersion: v1\nkind: Secret\nmetadata: { name: users, namespace: other }\nstringData: { auth: \"bob:$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW\" }\n";
    let objects = format!("{users}{}", ingress("auth-type: basic\nauth-secret: other/users"));
    let closed = translated(&objects);
    assert!(
        closed.yaml.contains("CLOSED") && closed.report.to_string().contains("is in another namespace"),
        "{}",
        closed.report
    );
    let map = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: ingress-nginx-controller, namespace: ingress-nginx }\ndata: { allow-cross-namespace-resources: \"true\" }\n";
    assert!(!translated(&format!("{map}{objects}")).yaml.contains("CLOSED"));
}

#[test]
fn thousands_of_objects_are_translated() {
    let one = |number: usize| {
        let annotations = "enable-cors: \"true\"\nlimit-rps: \"5\"\nproxy-body-size: 8m";
        let text = ingress(annotations).replace("name: web", &format!("name: web-{number}"));
        text.replace("a.example", &format!("h{number}.example"))
    };
    let translation = translated(&(0..3_000).map(one).collect::<String>());
    assert_eq!(translation.report.translated, 3_000);
    assert!(!translation.yaml.contains("CLOSED"));
}
