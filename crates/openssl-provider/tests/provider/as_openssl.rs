//! Commands of OpenSSL's own recipes (15-test_rsapss, 25-test_req, 80-test_cms), with the module and without: the same
//! succeed, with the same algorithm identifiers.

use crate::support::{Site, said};

fn site() -> Site {
    let site = Site::new();
    site.write("message", "to be signed");
    site.certificate("site", "rsa:2048");
    site.certificate("odd", "rsa:2049");
    site.certificate("curve", "ec:P-256");
    for name in ["site", "odd", "curve"] {
        site.plain_openssl(&format!("req -new -key {name}.key -subj /CN=request -out {name}.csr"));
        site.plain_openssl(&format!("pkey -in {name}.key -pubout -out {name}.pub"));
    }
    site
}

/// Returns the lines of a printed certificate or message that name the signature's algorithm.
fn algorithm(printed: &str) -> Vec<String> {
    let names = ["Algorithm", "Mask", "Salt", "Trailer", "algorithm", "parameter", "Hash"];
    let lines = printed.lines().map(str::trim).filter(|line| names.iter().any(|name| line.contains(name)));
    lines.map(str::to_owned).collect()
}

/// Runs a command that writes `out`, with the module and without; both must succeed, or both must fail. Returns the two
/// results as `print` shows them.
fn compare(site: &Site, command: &str, print: &str) {
    let run = |program: &mut std::process::Command| {
        let output = program.args(command.split(' ')).stdin(std::process::Stdio::null()).output();
        let output = output.expect("openssl");
        let shown = if output.status.success() { algorithm(&site.plain_openssl(print)) } else { Vec::new() };
        (output.status.success(), shown, said(&output))
    };
    let plain = run(&mut site.plain("openssl"));
    let ours = run(&mut site.with_provider("openssl"));
    assert_eq!(ours.0, plain.0, "{command}: with the module: {}; without: {}", ours.2, plain.2);
    assert_eq!(ours.1, plain.1, "{command}");
}

const DIGESTS: [&str; 11] = [
    "-sha1",
    "-sha224",
    "-sha256",
    "-sha384",
    "-sha512",
    "-sha512-224",
    "-sha512-256",
    "-sha3-256",
    "-ripemd160",
    "-md5",
    "-sm3",
];

#[test]
fn certificates_and_requests() {
    let site = site();
    for name in ["site", "odd", "curve"] {
        let pss = "-sigopt rsa_padding_mode:pss";
        let mut options = vec![String::new()];
        if name != "curve" {
            options.push(format!(" {pss}"));
            for salt in ["digest", "max", "auto", "20", "0", "200"] {
                options.push(format!(" {pss} -sigopt rsa_pss_saltlen:{salt}"));
            }
            options.push(format!(" {pss} -sigopt rsa_mgf1_md:sha1"));
        }
        for digest in DIGESTS {
            for options in &options {
                let sign = format!("req -x509 -key {name}.key -subj /CN=new -out out {digest}{options}");
                compare(&site, &sign, "x509 -in out -noout -text -certopt no_pubkey,no_extensions");
            }
        }
        for options in &options {
            let sign = format!("req -new -key {name}.key -subj /CN=new -out out -sha256{options}");
            compare(&site, &sign, "req -in out -noout -text -reqopt no_pubkey");
            assert!(site.plain_openssl("req -in out -noout -verify").contains("verify OK"));
            let sign =
                format!("x509 -req -in site.csr -CA {name}.pem -CAkey {name}.key -out out -sha256{options}");
            compare(&site, &sign, "x509 -in out -noout -text -certopt no_pubkey,no_extensions");
            site.openssl(&sign);
            assert!(site.plain_openssl(&format!("verify -CAfile {name}.pem out")).contains("OK"), "{sign}");
            site.plain_openssl(&sign);
            assert!(site.openssl(&format!("verify -CAfile {name}.pem out")).contains("OK"), "{sign}");
        }
    }
}

#[test]
fn messages() {
    let site = site();
    let pss = "-keyopt rsa_padding_mode:pss";
    for name in ["site", "odd"] {
        for options in [
            "",
            pss,
            &format!("{pss} -keyopt rsa_pss_saltlen:max"),
            &format!("{pss} -keyopt rsa_pss_saltlen:digest"),
            &format!("{pss} -keyopt rsa_pss_saltlen:16"),
            &format!("{pss} -md sha512-224"),
            "-md ripemd160",
        ] {
            let options = if options.is_empty() { String::new() } else { format!(" {options}") };
            let sign = format!(
                "cms -sign -nodetach -in message -binary -outform PEM -signer {name}.pem -inkey {name}.key -out out{options}"
            );
            compare(&site, &sign, "cms -cmsout -print -noout -inform PEM -in out");
            let verify =
                format!("cms -verify -noverify -binary -inform PEM -in out -certfile {name}.pem -out back");
            site.openssl(&sign);
            site.plain_openssl(&verify);
            assert_eq!(site.read("back"), "to be signed", "{sign}");
            site.plain_openssl(&sign);
            site.openssl(&verify);
        }
    }
}

#[test]
fn data_is_recovered_from_signatures() {
    let site = site();
    site.plain_openssl("dgst -sha256 -binary -out digest message");
    for (sign, recover) in [
        ("-in message", ""),
        ("-in digest -pkeyopt digest:sha256", " -pkeyopt digest:sha256"),
        ("-in digest -pkeyopt digest:sha256", ""),
        ("-in digest -pkeyopt digest:sha256", " -pkeyopt rsa_padding_mode:none"),
    ] {
        site.openssl(&format!("pkeyutl -sign -inkey site.key {sign} -out signature"));
        let recover = format!("pkeyutl -verifyrecover -inkey site.key -in signature -out back{recover}");
        let back = |run: &dyn Fn(&str) -> String| {
            run(&recover);
            std::fs::read(site.path("back")).expect("it is there")
        };
        assert_eq!(back(&|command| site.openssl(command)), back(&|command| site.plain_openssl(command)));
    }
    site.openssl("rsautl -verify -inkey site.key -in signature -out back");
    let wrong = ["-pkeyopt digest:sha384", "-pkeyopt rsa_padding_mode:pss"];
    for options in wrong {
        let recover = format!("pkeyutl -verifyrecover -inkey site.key -in signature {options}");
        crate::support::fail(site.with_provider("openssl").args(recover.split(' ')));
    }
    let mut signature = std::fs::read(site.path("signature")).expect("it is there");
    signature[100] ^= 1;
    std::fs::write(site.path("signature"), signature).expect("it is there");
    let recover = "pkeyutl -verifyrecover -inkey site.key -in signature";
    crate::support::fail(site.with_provider("openssl").args(recover.split(' ')));
    let recover = "pkeyutl -verifyrecover -inkey curve.key -in signature";
    crate::support::fail(site.with_provider("openssl").args(recover.split(' ')));
}

#[test]
fn decryption_with_every_digest() {
    let site = site();
    let oaep = "-pkeyopt rsa_padding_mode:oaep";
    for digest in ["sha512-224", "sha512-256", "sha3-256", "ripemd160", "sha224"] {
        let options = format!("{oaep} -pkeyopt rsa_oaep_md:{digest} -pkeyopt rsa_mgf1_md:sha1");
        site.plain_openssl(&format!(
            "pkeyutl -encrypt -pubin -inkey site.pub -in message -out out {options}"
        ));
        let decrypt = format!("pkeyutl -decrypt -inkey site.key -in out {options}");
        assert_eq!(site.openssl(&decrypt), "to be signed", "{digest}");
    }
}
