//! `quadrille keyserver sign`.

use super::remote::{Remote, block_on, key_of, read, usual_scheme};
use quadrille_engine::{Operation, SignatureScheme};
use quadrille_keyless::client::{Client, Origin};
use std::{fs, io::Write, path::PathBuf};

/// Signs a file with the key of a certificate, verifies the signature with the certificate, and writes it in its TLS
/// encoding (ECDSA: DER). The equivalent verification with openssl, for RSA:
///   openssl dgst -sha256 -sigopt rsa_padding_mode:pss -verify public.pem -signature SIGNATURE FILE
#[derive(clap::Args)]
#[command(verbatim_doc_comment)]
pub(super) struct Sign {
    #[command(flatten)]
    remote: Remote,
    /// A certificate in PEM; its key signs.
    #[arg(long = "for", value_name = "FILE")]
    certificate: PathBuf,
    /// The file to sign.
    #[arg(long = "in", value_name = "FILE")]
    input: PathBuf,
    /// Output file for the signature [default: standard output, in hexadecimal].
    #[arg(long = "out", value_name = "FILE")]
    output: Option<PathBuf>,
    /// Code point of a TLS signature scheme, such as 0x0804 [default: the scheme that TLS 1.3 uses with this key].
    #[arg(long, value_name = "SCHEME", value_parser = scheme)]
    scheme: Option<SignatureScheme>,
}

impl Sign {
    pub(super) fn run(self) -> Result<(), Vec<String>> {
        let settings = self.remote.settings()?;
        let key = key_of(&self.certificate)?;
        let message = read(&self.input)?;
        let scheme = self.scheme.unwrap_or_else(|| usual_scheme(key.key_type()));
        let operation = Operation::sign(scheme, &message)
            .and_then(|operation| operation.check(key.public()).map(|()| operation))
            .map_err(|error| vec![error.to_string()])?;
        let signature = block_on(async {
            let client = Client::new(settings).map_err(|error| vec![error.to_string()])?;
            let answer = client.submit(&key, operation, Origin::default(), false);
            let answer = answer.map_err(|failure| vec![failure.to_string()])?;
            answer.await.map_err(|failure| vec![format!("key {}: {failure}", key.ski())])
        })?;
        match &self.output {
            Some(file) => fs::write(file, &*signature)
                .map_err(|error| vec![format!("cannot write {}: {error}", file.display())]),
            None => {
                let hex: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(std::io::stdout(), "{hex}").map_err(|error| vec![error.to_string()])
            }
        }
    }
}

fn scheme(text: &str) -> Result<SignatureScheme, String> {
    let code = u16::from_str_radix(text.trim_start_matches("0x"), 16).ok();
    code.and_then(SignatureScheme::from_code_point).ok_or_else(|| {
        format!(
            "`{}` is not a signature scheme; write a code point of RFC 8446 such as 0x0804",
            text.escape_debug()
        )
    })
}
