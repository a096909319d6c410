//! The ACME account: created once, and kept in the state directory.

use crate::{AcmeError, Issued, files, files::StateDirectory, https::Https, order_lock::OrderLock};
use base64ct::{Base64UrlUnpadded, Encoding};
use instant_acme::{
    Account, AccountCredentials, ExternalAccountKey, NewAccount, RevocationReason, RevocationRequest,
};
use quadrille_config::model::{Acme, ExternalAccount};
use std::path::Path;
use zeroize::Zeroizing;

/// Returns the stored account, or creates one.
pub(crate) async fn open(
    acme: &Acme,
    state: &StateDirectory,
    https: &Https,
    lock: &OrderLock,
) -> Result<Account, AcmeError> {
    if let Some(account) = kept(acme, state, https).await? {
        return Ok(account);
    }
    let external = acme.external_account.as_ref().map(external_key).transpose();
    let external =
        external.map_err(|problem| AcmeError::File(format!("`acme.external_account.key_file` {problem}")))?;
    let contact = acme.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<_> = contact.iter().map(String::as_str).collect();
    let new = NewAccount { contact: &contact, terms_of_service_agreed: true, only_return_existing: false };
    let builder = Account::builder_with_http(Box::new(https.clone()));
    let (account, credentials) = builder.create(&new, acme.directory.clone(), external.as_ref()).await?;
    let json = Zeroizing::new(serde_json::to_vec(&credentials).map_err(|_| unreadable("the account"))?);
    lock.store(&files::account(acme), &json).await?;
    tracing::info!(directory = acme.directory, "an account with the certificate authority has been created");
    Ok(account)
}

/// Reason for a revocation (RFC 5280 section 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No reason is given.
    Unspecified,
    /// The private key is compromised.
    KeyCompromise,
    /// Another certificate replaces it.
    Superseded,
    /// The certificate is no longer used.
    CessationOfOperation,
}

/// Revokes the certificate in this file.
///
/// # Errors
/// If there is no account or no certificate, or the authority rejects the request.
pub async fn revoke(acme: &Acme, certificate: &Path, reason: Reason) -> Result<(), AcmeError> {
    let (state, https) = (StateDirectory::open(&acme.state)?, Https::new(acme)?);
    let none =
        || AcmeError::File(format!("{} holds no account with {}", acme.state.display(), acme.directory));
    let account = kept(acme, &state, &https).await?.ok_or_else(none)?;
    let none = || AcmeError::File(format!("{} holds no certificate", certificate.display()));
    let issued = Issued::read(certificate).ok_or_else(none)?;
    let der = rustls_pki_types::CertificateDer::from(issued.chain[0].to_der()?);
    let reason = match reason {
        Reason::Unspecified => RevocationReason::Unspecified,
        Reason::KeyCompromise => RevocationReason::KeyCompromise,
        Reason::Superseded => RevocationReason::Superseded,
        Reason::CessationOfOperation => RevocationReason::CessationOfOperation,
    };
    account.revoke(&RevocationRequest { certificate: &der, reason: Some(reason) }).await?;
    Ok(())
}

/// Loads the stored account.
pub(crate) async fn kept(
    acme: &Acme,
    state: &StateDirectory,
    https: &Https,
) -> Result<Option<Account>, AcmeError> {
    let Some(credentials) = credentials(&state.path(&files::account(acme)))? else { return Ok(None) };
    let builder = Account::builder_with_http(Box::new(https.clone()));
    Ok(Some(builder.from_credentials(credentials).await?))
}

/// Reads the stored account, if there is one.
pub(crate) fn credentials(file: &Path) -> Result<Option<AccountCredentials>, AcmeError> {
    let Some(json) = files::read(file)? else { return Ok(None) };
    serde_json::from_slice(&json).map(Some).map_err(|_| unreadable(&file.display().to_string()))
}

/// Reads the key that binds a new account to an external one; an error names the file.
pub(crate) fn external_key(external: &ExternalAccount) -> Result<ExternalAccountKey, String> {
    let (file, _) = &external.key_file;
    let unusable = |problem: &str| format!("{}: {problem}", file.display());
    let text = files::read_as_given(file).map_err(|error| unusable(&error.to_string()))?;
    let text = text.ok_or_else(|| unusable("the file does not exist"))?;
    let text = std::str::from_utf8(text.trim_ascii()).unwrap_or_default().trim_end_matches('=');
    let key = Base64UrlUnpadded::decode_vec(text).map(Zeroizing::new);
    let key = key.map_err(|_| unusable("not a base64url-encoded key"))?;
    Ok(ExternalAccountKey::new(external.id.clone(), &key))
}

fn unreadable(what: &str) -> AcmeError {
    AcmeError::File(format!("{what} is not a valid account; move it away, and a new one is created"))
}
