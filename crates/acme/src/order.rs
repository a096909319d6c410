//! One order, from the first request to the certificate (RFC 8555 section 7.4).

use crate::{
    AcmeError, Issued, Wanted, answers::Answer, certificate_request, dns_records::Records,
    fleet::certificate_name, order_key::OrderKey, order_lock::OrderLock,
};
use instant_acme::{
    Account, AuthorizationHandle, AuthorizationStatus, CertificateIdentifier, ChallengeHandle, ChallengeType,
    Identifier, NewOrder, Order, OrderStatus, RetryPolicy,
};
use quadrille_config::model::{Acme, AcmeChallenge};
use std::{net::IpAddr, time::Duration};

/// Long enough for validation from several networks by a busy CA.
const VALIDATION: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(300)).backoff(1.5);
const ISSUANCE: RetryPolicy = RetryPolicy::new().timeout(Duration::from_secs(180)).backoff(1.5);

const BAD_NONCE: &str = "urn:ietf:params:acme:error:badNonce";
/// Number of times that a download is retried after rejected nonces.
const MOST_REFUSED: u32 = 5;

/// Inputs of an order.
pub(crate) struct Ordering<'a> {
    pub(crate) acme: &'a Acme,
    pub(crate) account: &'a Account,
    pub(crate) lock: &'a OrderLock,
    pub(crate) wanted: &'a Wanted,
    /// The new key.
    pub(crate) key: &'a OrderKey,
}

impl Ordering<'_> {
    /// Orders a certificate for the key and stores it, with the key unless key servers hold it. `replaces` is the
    /// certificate that it supersedes.
    pub(crate) async fn obtain(&self, replaces: Option<&Issued>) -> Result<Issued, AcmeError> {
        let mut order = self.begin(replaces.and_then(Issued::identifier)).await?;
        let mut records = Records::new(self.acme.dns_hook.as_ref().map(|(hook, _)| hook.as_path()));
        let validated = self.validate(&mut order, &mut records).await;
        let ended = self.lock.publish(&[]).await;
        records.remove().await;
        validated.and(ended)?;
        let issued = self.issue(&mut order).await?;
        let file = issued.to_file(self.key.private())?;
        self.lock.store(&certificate_name(&self.wanted.id()), &file).await?;
        Ok(issued)
    }

    /// Creates the order. If the authority rejects `replaces` (unknown, or already replaced), retries without it.
    async fn begin(&self, replaces: Option<CertificateIdentifier<'static>>) -> Result<Order, AcmeError> {
        let wanted = &self.wanted.order;
        let identifiers: Vec<_> = wanted.names.iter().map(|name| identifier(name)).collect();
        let new = || {
            let new = NewOrder::new(&identifiers);
            wanted.profile.as_deref().into_iter().fold(new, instant_acme::NewOrder::profile)
        };
        if let Some(replaces) = replaces {
            match self.account.new_order(&new().replaces(replaces)).await {
                Ok(order) => return Ok(order),
                Err(error) => match AcmeError::from(error) {
                    error @ AcmeError::NoAccount(_) => return Err(error),
                    error => tracing::debug!(%error, "retrying the order without the replaced certificate"),
                },
            }
        }
        Ok(self.account.new_order(&new()).await?)
    }

    /// Validates all names in parallel: every challenge is reported ready before the first result is awaited.
    async fn validate(&self, order: &mut Order, records: &mut Records) -> Result<(), AcmeError> {
        let mut answers = Vec::new();
        let mut pending = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let kind = self.choose(&authorization)?;
            let name = authorization.identifier().to_string();
            pending.push(kind.clone());
            let Some(challenge) = authorization.challenge(kind) else { continue };
            self.prepare(name, &challenge, &mut answers, records).await?;
        }
        if pending.is_empty() {
            return Ok(());
        }
        self.lock.publish(&answers).await?;
        let mut kinds = pending.into_iter();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let challenge = kinds.next().and_then(|kind| authorization.challenge(kind));
            if let Some(mut challenge) = challenge {
                challenge.set_ready().await?;
            }
        }
        match order.poll_ready(&VALIDATION).await {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => Err(AcmeError::Refused(explain(order).await)),
            Err(instant_acme::Error::Api(problem)) => {
                Err(AcmeError::Refused(format!("{problem}; {}", explain(order).await)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the first of the configured challenges that the authority offers.
    fn choose(&self, authorization: &AuthorizationHandle<'_>) -> Result<ChallengeType, AcmeError> {
        let name = authorization.identifier().to_string();
        let offered: Vec<_> = authorization.challenges.iter().map(|challenge| &challenge.r#type).collect();
        let mut able = self.acme.challenges_for(&name).map(challenge_type);
        able.find(|kind| offered.contains(&kind)).ok_or_else(|| {
            AcmeError::Refused(format!("none of `acme.challenges` is offered for {name}, only {offered:?}"))
        })
    }

    async fn prepare(
        &self,
        name: String,
        challenge: &ChallengeHandle<'_>,
        answers: &mut Vec<Answer>,
        records: &mut Records,
    ) -> Result<(), AcmeError> {
        let proof = challenge.key_authorization();
        match challenge.r#type {
            ChallengeType::Http01 => answers.push(Answer::Http {
                token: challenge.token.clone(),
                key_authorization: proof.as_str().to_owned(),
            }),
            ChallengeType::TlsAlpn01 => {
                let digest = proof.digest().as_ref().to_vec();
                answers.push(match self.key {
                    OrderKey::Local(_) => Answer::TlsAlpn { name, digest },
                    OrderKey::Remote(..) => {
                        let certificate = certificate_request::challenge(self.key, &name, &digest).await?;
                        Answer::TlsAlpnSigned { name, certificate, order: self.wanted.id() }
                    }
                });
            }
            _ => {
                records.add(&name, proof.dns_value()).await?;
            }
        }
        Ok(())
    }

    async fn issue(&self, order: &mut Order) -> Result<Issued, AcmeError> {
        let names = &self.wanted.order.names;
        order.finalize_csr(&certificate_request::request(self.key, names).await?).await?;
        let pem = download(order).await?;
        Issued::new(&pem, self.key.public().pkey(), names)
    }
}

/// Downloads the certificate. The library gives up after three consecutive rejected nonces (RFC 8555 section 6.5),
/// and the issued certificate would have to be ordered again.
async fn download(order: &mut Order) -> Result<String, instant_acme::Error> {
    let mut refused = 0;
    loop {
        match order.poll_certificate(&ISSUANCE).await {
            Err(instant_acme::Error::Api(problem))
                if problem.r#type.as_deref() == Some(BAD_NONCE) && refused < MOST_REFUSED =>
            {
                refused += 1;
            }
            other => return other,
        }
    }
}

fn identifier(name: &str) -> Identifier {
    match name.parse::<IpAddr>() {
        Ok(address) => Identifier::Ip(address),
        Err(_) => Identifier::Dns(name.to_owned()),
    }
}

fn challenge_type(challenge: AcmeChallenge) -> ChallengeType {
    match challenge {
        AcmeChallenge::TlsAlpn01 => ChallengeType::TlsAlpn01,
        AcmeChallenge::Http01 => ChallengeType::Http01,
        AcmeChallenge::Dns01 => ChallengeType::Dns01,
    }
}

/// Returns the authority's descriptions of the validation errors.
async fn explain(order: &mut Order) -> String {
    let mut said = Vec::new();
    let mut authorizations = order.authorizations();
    while let Some(Ok(mut authorization)) = authorizations.next().await {
        if authorization.refresh().await.is_err() {
            continue;
        }
        let name = authorization.identifier().to_string();
        let errors = authorization.challenges.iter().filter_map(|challenge| challenge.error.as_ref());
        said.extend(errors.map(|error| format!("{name}: {error}")));
    }
    if said.is_empty() { "the names could not be validated".to_owned() } else { said.join("; ") }
}
