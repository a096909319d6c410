//! The key of an order: generated locally or on a key server, and its signatures.

use crate::AcmeError;
use boring::{hash::MessageDigest, sign::Signer};
use quadrille_config::model::AcmeKeyType;
use quadrille_engine::{Key, KeyType, Operation, PublicKey, SignatureScheme};
use quadrille_keyless::{
    client::{Client, Failure, KeyChangeError, Origin, Refusal, RemoteKey},
    wire::{ErrorCode, opcode::MAX_REFERENCE},
};

/// The key of an order.
pub(crate) enum OrderKey {
    /// A local key, stored with its certificate.
    Local(Key),
    /// A key on key servers; only its public half is known here.
    Remote(RemoteKey, Client),
}

impl OrderKey {
    /// Generates a local key on another thread: RSA takes long enough to lose the lock.
    pub(crate) async fn generate(key_type: AcmeKeyType) -> Result<Self, AcmeError> {
        let key_type = crate::key_servers::key_type(key_type);
        let failed = |problem: String| AcmeError::File(format!("the key could not be generated: {problem}"));
        let made = tokio::task::spawn_blocking(move || Key::generate(key_type)).await;
        let made = made.map_err(|error| failed(error.to_string()))?;
        Ok(Self::Local(made.map_err(|error| failed(error.to_string()))?))
    }

    /// Generates a key on key servers, labelled with its purpose.
    pub(crate) async fn generate_on(
        client: &Client,
        key_type: AcmeKeyType,
        label: &str,
    ) -> Result<RemoteKey, AcmeError> {
        // The end is the more specific part.
        let reference = label.get(label.len().saturating_sub(MAX_REFERENCE)..).unwrap_or(label);
        let reference = reference.trim_start_matches(['.', '-']);
        let made = client.generate(crate::key_servers::key_type(key_type), reference).await;
        made.map_err(|error| AcmeError::KeyServer(explain(&error, reference)))
    }

    pub(crate) fn public(&self) -> &PublicKey {
        match self {
            Self::Local(key) => key.public(),
            Self::Remote(key, _) => key.public(),
        }
    }

    /// Returns the private key that is stored with the certificate.
    pub(crate) fn private(&self) -> Option<&Key> {
        match self {
            Self::Local(key) => Some(key),
            Self::Remote(..) => None,
        }
    }

    /// Signs with the key's usual X.509 algorithm: ECDSA in DER, or PKCS #1 v1.5.
    pub(crate) async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, AcmeError> {
        let (scheme, digest) = match self.public().key_type() {
            KeyType::EcdsaP384 => (SignatureScheme::EcdsaSha384, MessageDigest::sha384()),
            KeyType::Rsa { .. } => (SignatureScheme::RsaPkcs1Sha256, MessageDigest::sha256()),
            _ => (SignatureScheme::EcdsaSha256, MessageDigest::sha256()),
        };
        match self {
            Self::Local(key) => Ok(Signer::new(digest, key.pkey())?.sign_oneshot_to_vec(message)?),
            Self::Remote(key, client) => {
                let failed = |failure: Failure| {
                    let problem = format!("key {}: {failure}", key.ski());
                    match failure {
                        Failure::Refused(ErrorCode::KeyNotFound) => AcmeError::NoKey(problem),
                        _ => AcmeError::KeyServer(problem),
                    }
                };
                let operation = Operation::sign(scheme, message).map_err(|error| failed(error.into()))?;
                let answer = client.submit(key, operation, Origin::default(), false).map_err(failed)?;
                Ok(answer.await.map_err(failed)?.to_vec())
            }
        }
    }
}

/// Describes the errors of key servers, with the remedy for each.
fn explain(error: &KeyChangeError, reference: &str) -> String {
    let said: Vec<_> = error
        .refusals()
        .map(|(server, refusal)| match refusal {
            Refusal::Refused(ErrorCode::Denied) => format!(
                "the policy of {server} does not allow this gateway to generate keys: its entry needs \
                 `operations: [sign, generate]`, and `keys` that cover `{reference}`"
            ),
            Refusal::Refused(ErrorCode::TooManyKeys) => format!(
                "{server} holds as many keys of this gateway as its policy allows: remove unused ones from \
                 its directory, or raise `generated_keys`"
            ),
            Refusal::Refused(ErrorCode::BadOpcode) => {
                format!("{server} does not generate keys: it must be a `quadrille keyserver` of this version")
            }
            Refusal::Refused(ErrorCode::Internal) => format!("{server} cannot store a key; see its log"),
            refusal => format!("{server}: {refusal}"),
        })
        .collect();
    said.join("; ")
}
