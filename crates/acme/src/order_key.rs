//! The key of an order: made here, or on a key server, and what it signs.

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
    /// It is kept with its certificate.
    Local(Key),
    /// Here is its public half alone.
    Remote(RemoteKey, Client),
}

impl OrderKey {
    /// A new one that is kept here. Made on another thread: with RSA it takes long enough to lose the turn.
    pub(crate) async fn generate(key_type: AcmeKeyType) -> Result<Self, AcmeError> {
        let key_type = crate::key_servers::key_type(key_type);
        let failed = |problem: String| AcmeError::File(format!("no key could be made: {problem}"));
        let made = tokio::task::spawn_blocking(move || Key::generate(key_type)).await;
        let made = made.map_err(|error| failed(error.to_string()))?;
        Ok(Self::Local(made.map_err(|error| failed(error.to_string()))?))
    }

    /// A new one on key servers, called after what it is for.
    pub(crate) async fn generate_on(
        client: &Client,
        key_type: AcmeKeyType,
        label: &str,
    ) -> Result<RemoteKey, AcmeError> {
        // The end tells more.
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

    /// What is kept with the certificate.
    pub(crate) fn private(&self) -> Option<&Key> {
        match self {
            Self::Local(key) => Some(key),
            Self::Remote(..) => None,
        }
    }

    /// The usual signature of such a key in X.509: ECDSA in DER, or PKCS #1 v1.5.
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

/// What key servers have said, with what to do about it.
fn explain(error: &KeyChangeError, reference: &str) -> String {
    let said: Vec<_> = error
        .refusals()
        .map(|(server, refusal)| match refusal {
            Refusal::Refused(ErrorCode::Denied) => format!(
                "the policy of {server} does not let this gateway generate keys: there, its entry needs `operations: \
                 [sign, generate]`, and `keys` that cover `{reference}`"
            ),
            Refusal::Refused(ErrorCode::TooManyKeys) => format!(
                "{server} has as many keys of this gateway as its policy allows: remove those that are not used from \
                 its directory, or raise `generated_keys`"
            ),
            Refusal::Refused(ErrorCode::BadOpcode) => {
                format!("{server} makes no keys: it must be a `quadrille keyserver` of this version")
            }
            Refusal::Refused(ErrorCode::Internal) => {
                format!("{server} cannot keep a key: its log says why")
            }
            refusal => format!("{server}: {refusal}"),
        })
        .collect();
    said.join("; ")
}
