//! `include` of nginx: files relative to the main one, with places of their own in remarks.

use quadrille_convert::{Language, Source, convert};

#[test]
fn remarks_name_the_included_file() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let sites = directory.path().join("sites");
    std::fs::create_dir(&sites).expect("a directory");
    let site = "server {\n    listen 80;\n    location / { fastcgi_pass app:9000; }\n}\n";
    std::fs::write(sites.join("a.conf"), site).expect("a file");
    std::fs::write(sites.join("b.conf"), "server { listen 81; return 204; }\n").expect("a file");
    let text = "http { include mime.types; include sites/*.conf; include none/*.conf; }\n".to_owned();
    let source = Source { name: "nginx.conf".into(), directory: directory.path().to_owned(), text };
    let conversion = convert(Language::Nginx, &source).expect("a conversion");
    let remarks: Vec<_> = conversion.not_converted.iter().map(ToString::to_string).collect();
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let place = format!("{}:3: fastcgi_pass app:9000: ", sites.join("a.conf").display());
    assert!(remarks[0].starts_with(&place), "{remarks:?}");
    assert!(conversion.yaml.contains("0.0.0.0:81"), "{}", conversion.yaml);
}

#[test]
fn files_that_include_themselves_are_refused() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(directory.path().join("a.conf"), "include a.conf;\n").expect("a file");
    let source = Source {
        name: "nginx.conf".into(),
        directory: directory.path().to_owned(),
        text: "include a.conf;\n".to_owned(),
    };
    let problem = convert(Language::Nginx, &source).expect_err("a circle");
    assert!(problem.contains("nested too deeply"), "{problem}");
}
