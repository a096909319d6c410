//! Single operations through OpenSSL's own command, each checked by an OpenSSL without the module.

use crate::support::{Site, fail, finish, module, quadrille};
use quadrille_engine::{Key, KeyType, MlDsa};

fn site() -> Site {
    let site = Site::new();
    site.write("message", "to be signed");
    site
}

fn public(site: &Site, name: &str) {
    site.plain_openssl(&format!("x509 -in {name}.pem -pubkey -noout -out {name}.pub"));
}

/// Signs with `key`, and verifies with plain OpenSSL.
fn signs(site: &Site, key: &str, name: &str, options: &str) {
    let options = if options.is_empty() { String::new() } else { format!("{options} ") };
    site.openssl(&format!("dgst {options}-sign {key} -out signature message"));
    let verified =
        site.plain_openssl(&format!("dgst {options}-verify {name}.pub -signature signature message"));
    assert!(verified.contains("Verified OK"), "{key} {options}: {verified}");
}

#[test]
fn the_module_is_loaded_and_shows_nothing_but_its_entrance() {
    let site = site();
    let listed = site.openssl("list -providers");
    assert!(listed.contains("Quadrille: private-key operations in batches"), "{listed}");
    let symbols = finish(site.plain("nm").arg("-D").arg("--defined-only").arg(crate::support::module()));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let names: Vec<&str> = symbols.lines().filter_map(|line| line.split(' ').next_back()).collect();
    assert_eq!(names, ["OSSL_provider_init"]);
}

#[test]
fn rsa_signatures_in_every_padding() {
    let site = site();
    for (name, kind) in [("small", "rsa:2048"), ("large", "rsa:4096")] {
        site.certificate(name, kind);
        public(&site, name);
        let key = format!("{name}.key");
        for options in [
            "-sha256",
            "-sha1",
            "-sha384",
            "-sha512",
            "-sha224",
            "-sha512-224",
            "-sha512-256",
            "-sha3-224",
            "-sha3-256",
            "-sha3-384",
            "-sha3-512",
            "-ripemd160",
            "-md5",
            "-md5-sha1",
            "-sha256 -sigopt rsa_padding_mode:pss",
            "-sha256 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest",
            "-sha384 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:max",
            "-sha512 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:20 -sigopt rsa_mgf1_md:sha256",
            "-sha512-224 -sigopt rsa_padding_mode:pss -sigopt rsa_mgf1_md:sha512-256",
            "-sha3-256 -sigopt rsa_padding_mode:pss",
            "-ripemd160 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:0",
        ] {
            signs(&site, &key, name, options);
        }
    }
    let unknown = fail(site.with_provider("openssl").args("dgst -sm3 -sign small.key message".split(' ')));
    assert!(unknown.contains("digest is not supported"), "{unknown}");
}

#[test]
fn rsa_keys_in_pkcs1_and_bare_digests() {
    let site = site();
    site.certificate("site", "rsa:2048");
    public(&site, "site");
    site.plain_openssl("rsa -in site.key -traditional -out old.key");
    signs(&site, "old.key", "site", "-sha256");
    site.plain_openssl("dgst -sha256 -binary -out digest message");
    for options in [
        "-pkeyopt digest:sha256",
        "-pkeyopt digest:sha256 -pkeyopt rsa_padding_mode:pss",
        "-pkeyopt rsa_padding_mode:pkcs1",
    ] {
        site.openssl(&format!("pkeyutl -sign -inkey site.key -in digest -out signature {options}"));
        site.plain_openssl(&format!(
            "pkeyutl -verify -pubin -inkey site.pub -in digest -sigfile signature {options}"
        ));
    }
}

#[test]
fn what_the_provider_signs_it_verifies_and_nothing_else() {
    let site = site();
    site.certificate("site", "rsa:2048");
    site.certificate("curve", "ec:P-384");
    for (key, options) in [
        ("site.key".to_owned(), "-pkeyopt digest:sha256"),
        ("site.key".to_owned(), "-pkeyopt digest:sha256 -pkeyopt rsa_padding_mode:pss"),
        (format!("quadrille:file:{}", site.path_text("curve.key")), ""),
    ] {
        site.plain_openssl("dgst -sha256 -binary -out digest message");
        site.openssl(format!("pkeyutl -sign -inkey {key} -in digest -out signature {options}").trim_end());
        let verify = format!("pkeyutl -verify -inkey {key} -in digest -sigfile signature {options}");
        assert!(site.openssl(verify.trim_end()).contains("Verified Successfully"), "{key} {options}");
        let mut signature = std::fs::read(site.path("signature")).expect("it is there");
        let last = signature.len() - 1;
        signature[last] ^= 1;
        std::fs::write(site.path("signature"), signature).expect("it is there");
        fail(site.with_provider("openssl").args(verify.trim_end().split(' ')));
    }
}

#[test]
fn ecdsa_by_uri_and_certificates() {
    let site = site();
    for (name, curve) in [("p256", "P-256"), ("p384", "P-384"), ("p521", "P-521")] {
        site.certificate(name, &format!("ec:{curve}"));
        public(&site, name);
        signs(&site, &format!("quadrille:file:{}", site.path_text(&format!("{name}.key"))), name, "-sha256");
        for options in
            ["-sha256", "-sha224", "-sha512", "-sha512-224", "-sha512-256", "-sha3-224", "-sha3-384"]
        {
            signs(&site, &format!("{name}.key"), name, options);
        }
    }
    site.certificate("site", "rsa:2048");
    for options in ["-sha256", "-sha384 -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest"] {
        site.openssl(&format!("req -x509 -key site.key -subj /CN=new -out new.pem {options}"));
        assert!(site.plain_openssl("verify -CAfile new.pem new.pem").contains("OK"));
    }
    let key = format!("quadrille:file:{}", site.path_text("p256.key"));
    site.openssl(&format!("req -x509 -key {key} -subj /CN=new -out new.pem -sha256"));
    assert!(site.plain_openssl("verify -CAfile new.pem new.pem").contains("OK"));
}

#[test]
fn decryption() {
    let site = site();
    site.certificate("site", "rsa:2048");
    public(&site, "site");
    for options in [
        "",
        "-pkeyopt rsa_padding_mode:oaep",
        "-pkeyopt rsa_padding_mode:oaep -pkeyopt rsa_oaep_md:sha256 -pkeyopt rsa_mgf1_md:sha384 -pkeyopt rsa_oaep_label:aabb",
    ] {
        let with = |text: &str| format!("{text} {options}").trim_end().to_owned();
        site.plain_openssl(&with("pkeyutl -encrypt -pubin -inkey site.pub -in message -out encrypted"));
        assert_eq!(site.openssl(&with("pkeyutl -decrypt -inkey site.key -in encrypted")), "to be signed");
        site.openssl(&with("pkeyutl -encrypt -inkey site.key -in message -out encrypted"));
        assert_eq!(
            site.plain_openssl(&with("pkeyutl -decrypt -inkey site.key -in encrypted")),
            "to be signed"
        );
    }
    // With other padding inside, OAEP reports an error, and PKCS #1 v1.5 returns a different message, always the
    // same.
    site.plain_openssl(
        "pkeyutl -encrypt -pubin -inkey site.pub -in message -out encrypted -pkeyopt rsa_padding_mode:oaep",
    );
    let other = || {
        finish(
            site.with_provider("openssl").args("pkeyutl -decrypt -inkey site.key -in encrypted".split(' ')),
        )
        .stdout
    };
    assert_eq!(other(), other());
    site.plain_openssl("pkeyutl -encrypt -pubin -inkey site.pub -in message -out encrypted");
    fail(
        site.with_provider("openssl")
            .args("pkeyutl -decrypt -inkey site.key -in encrypted -pkeyopt rsa_padding_mode:oaep".split(' ')),
    );
}

#[test]
fn a_private_key_stays_and_a_public_one_does_not() {
    let site = site();
    site.certificate("site", "rsa:2048");
    public(&site, "site");
    let refused = fail(site.with_provider("openssl").args("pkey -in site.key -out copy.key".split(' ')));
    assert!(refused.contains("are not exported by the quadrille provider"), "{refused}");
    site.openssl("pkey -in site.key -pubout -out copy.pub");
    assert_eq!(site.read("copy.pub"), site.read("site.pub"));
}

#[test]
fn everything_else_is_the_default_providers() {
    let site = site();
    site.openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out fresh.key");
    site.openssl("genpkey -algorithm ED25519 -out ed.key");
    site.openssl("pkeyutl -sign -inkey ed.key -rawin -in message -out signature");
    site.openssl("genpkey -algorithm RSA-PSS -pkeyopt rsa_keygen_bits:2048 -out pss.key");
    site.openssl("dgst -sha256 -sign pss.key -out signature message");
    site.openssl("ecparam -name secp256k1 -genkey -out k1.key");
    site.openssl("dgst -sha256 -sign k1.key -out signature message");
}

#[test]
fn what_is_wrong_with_a_uri_is_said() {
    let site = site();
    site.certificate("site", "rsa:2048");
    site.openssl("genpkey -algorithm ED25519 -out ed.key");
    let at = |name: &str| site.path_text(name);
    site.write("empty.pem", "");
    for (uri, words) in [
        ("quadrille:file:/nowhere/site.key".to_owned(), "No such file"),
        (format!("quadrille:file:{}", at("empty.pem")), "no private key found"),
        (format!("quadrille:file:{}", at("ed.key")), "neither RSA nor ECDSA"),
        (format!("quadrille:unix:{}", at("none.sock")), "?key="),
        (format!("quadrille:unix:{}?key={}", at("none.sock"), at("site.pem")), "quadrille keyserver"),
        ("quadrille:keyless:keys.internal:2407?key=/x".to_owned(), "unix:/path"),
    ] {
        let said = fail(site.with_provider("openssl").args(["dgst", "-sha256", "-sign", &uri, "message"]));
        assert!(said.contains(words), "{uri}: {said}");
    }
}

#[test]
fn ml_dsa_keys_are_refused_with_the_reason() {
    let site = site();
    let key = Key::generate(KeyType::MlDsa(MlDsa::MlDsa44)).expect("a key");
    let text = |pem: Vec<u8>| String::from_utf8(pem).expect("PEM");
    site.write("pq.key", &text(key.pkey().private_key_to_pem_pkcs8().expect("PEM")));
    site.write("pq.pub", &text(key.public().pkey().public_key_to_pem().expect("PEM")));
    let at = |name: &str| site.path_text(name);
    for uri in [
        format!("quadrille:file:{}", at("pq.key")),
        format!("quadrille:unix:{}?key={}", at("none.sock"), at("pq.pub")),
    ] {
        let said = fail(site.with_provider("openssl").args(["dgst", "-sha256", "-sign", &uri, "message"]));
        assert!(said.contains("it is an ML-DSA key, and libssl of OpenSSL 3.0."), "{uri}: {said}");
    }
    let (quadrille, module) = (quadrille().display().to_string(), module().display().to_string());
    for arguments in [
        ["check", "nginx", "--key=pq.key", "--module", &module],
        ["key", "--server", "unix:/run/keys.sock", "--cert", "pq.pub"],
    ] {
        let said = fail(site.plain(&quadrille).arg("provider").args(arguments));
        assert!(said.contains("pq.") && said.contains("it is an ML-DSA key"), "{arguments:?}: {said}");
    }
}
