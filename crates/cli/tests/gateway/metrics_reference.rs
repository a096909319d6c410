//! `docs/reference/metrics.md` compared with the metrics of the gateway and the key server.

use crate::support::{
    Certificates, Configuration, Gateway, KeyServer, Site, configuration, curl_status, s_client,
};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

const REFERENCE: &str = include_str!("../../../../docs/reference/metrics.md");

/// The kind and the labels of a metric.
type Metrics = BTreeMap<String, (String, BTreeSet<String>)>;

/// Returns the rows of the reference's tables: `| name | type | labels | description |`.
fn documented() -> Metrics {
    let in_ticks = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').splitn(4, '|').map(str::trim).collect();
        let [name, kind, labels, _] = cells[..] else { return None };
        ["counter", "gauge", "histogram"].contains(&kind).then(|| {
            let name = in_ticks(name).first().expect("a name in backticks").clone();
            (name, (kind.to_owned(), in_ticks(labels).into_iter().collect()))
        })
    };
    REFERENCE.lines().filter_map(row).collect()
}

/// Returns the declarations in a scrape.
fn exposed(scrape: &str, metrics: &mut Metrics) {
    for line in scrape.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let (name, kind) = declared.split_once(' ').expect("name and kind");
            metrics.entry(name.to_owned()).or_insert_with(|| (kind.to_owned(), BTreeSet::new()));
        } else if let Some((series, labels)) =
            line.rsplit_once('}').and_then(|(series, _)| series.split_once('{'))
        {
            let parts = ["_bucket", "_sum", "_count"].map(|part| series.strip_suffix(part));
            let name = parts.into_iter().flatten().find(|name| metrics.contains_key(*name)).unwrap_or(series);
            let labels = labels.split("\",").filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
            let known = &mut metrics.get_mut(name).unwrap_or_else(|| panic!("{line}: no TYPE")).1;
            known.extend(labels.filter(|label| label != "le"));
        }
    }
}

/// Starts a gateway and a key server, and exercises most features.
fn scraped() -> Metrics {
    let site = Site::new();
    let pair = site.certificates.rsa(2048, &["localhost"]);
    let local = site.certificates.rsa(2048, &["local.example"]);
    site.give_away(&pair, "site");
    let keys = KeyServer::start(&site, &[]);
    let key = site.keyless(&[keys.name()], "hedge: on");
    let listener = format!(
        "{{address: '127.0.0.1:0', certificates: [{{chain: {}, key: {key}}}, {{chain: {}, key: {}}}], upstream: dead}}",
        pair.chain.display(),
        local.chain.display(),
        local.key.display()
    );
    let dead = "dead: {servers: ['127.0.0.1:9'], health: on}";
    let file = Configuration::new(&configuration::document(&[listener], dead));
    let gateway = Gateway::with_config(&file.path(), 1);
    drive(&gateway, &site.certificates);
    let mut metrics = Metrics::new();
    exposed(&gateway.metrics(), &mut metrics);
    exposed(&keys.process.metrics(), &mut metrics);
    metrics
}

fn drive(gateway: &Gateway, certificates: &Certificates) {
    assert_eq!(curl_status(gateway, certificates, &[], "/"), "502");
    let local = ["-servername", "local.example"];
    assert!(!s_client(gateway.address(0), &certificates.ca(), &local).answered(), "there is no upstream");
    let http = format!("http://{}/", gateway.address(0));
    let _ =
        crate::support::output(std::process::Command::new("curl").args(["-sS", "--max-time", "600", &http]));
    gateway.wait_for_metric("quadrille_handshake_failures_total", &[], |count| count > 0.0);
    gateway.signal("HUP");
    gateway.wait_for_metric("quadrille_reloads_total", &[], |count| count > 0.0);
}

#[test]
fn everything_that_is_exposed_is_in_the_reference() {
    let documented = documented();
    let exposed = scraped();
    assert!(exposed.len() > 25, "{exposed:?}");
    for (name, what) in &exposed {
        let said =
            documented.get(name).unwrap_or_else(|| panic!("{name} is not in docs/reference/metrics.md"));
        assert_eq!(said.0, what.0, "the kind of {name}");
        assert!(
            what.1.is_subset(&said.1),
            "labels of {name}: {:?} are documented, {:?} exposed",
            said.1,
            what.1
        );
    }
    // Series that have been counted have all their labels.
    for name in [
        "quadrille_handshakes_total",
        "quadrille_handshake_cpu_nanoseconds_total",
        "quadrille_keyserver_operations_total",
    ] {
        assert_eq!(documented[name], exposed[name], "{name}");
    }
}

#[test]
fn everything_in_the_reference_exists() {
    let mut sources = String::new();
    for krate in ["gateway", "keyless", "pkcs11"] {
        read(&Path::new("..").join(krate).join("src"), &mut sources);
    }
    for name in documented().keys() {
        assert!(sources.contains(&format!("\"{name}\"")), "{name} is in the reference only");
    }
}

/// Reads all sources except the table from which the reference is generated.
fn read(directory: &Path, sources: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory of sources").map_while(Result::ok) {
        match entry.path() {
            path if path.ends_with("metric_table") => {}
            path if path.is_dir() => read(&path, sources),
            path => sources.push_str(&fs::read_to_string(path).expect("a source")),
        }
    }
}
