//! Open requests of a client: ids, deadlines, and verification of results.

use super::{error::SessionError, operation::RemoteOperation};
use crate::wire::{ErrorCode, Violation};
use std::{
    collections::{BTreeSet, HashMap},
    time::{Duration, Instant},
};
use zeroize::Zeroizing;

/// End of a request for its submitter.
#[derive(Debug)]
pub struct Completion<O> {
    /// Submitted operation.
    pub operation: O,
    /// Time from submission to the reply, or to the deadline.
    pub took: Duration,
    /// Outcome of the request.
    pub outcome: Outcome,
}

/// Outcome of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A signature in its TLS form, or a raw RSA result, that the operation has [accepted](RemoteOperation::accepts).
    Computed(Zeroizing<Vec<u8>>),
    /// The server has rejected it.
    Refused(ErrorCode),
    /// The request was withdrawn, and the server has now replied.
    Withdrawn {
        /// Whether the server had computed it nevertheless. The result was not verified.
        computed: bool,
    },
    /// No reply was received before the deadline. The request has been withdrawn.
    Expired,
}

/// Requests by id.
pub(super) struct Requests<O> {
    unanswered: HashMap<u32, Unanswered<O>>,
    deadlines: BTreeSet<(Instant, u32)>,
    last_id: u32,
}

struct Unanswered<O> {
    /// `None` after the deadline.
    operation: Option<O>,
    submitted: Instant,
    deadline: Option<Instant>,
    withdrawn: bool,
}

impl<O: RemoteOperation> Requests<O> {
    pub(super) fn new() -> Self {
        Self { unanswered: HashMap::new(), deadlines: BTreeSet::new(), last_id: 0 }
    }

    /// Includes withdrawn requests, since the server replies to them.
    pub(super) fn len(&self) -> usize {
        self.unanswered.len()
    }

    /// Returns an id that no open request has. Zero is reserved for pings.
    pub(super) fn new_id(&mut self) -> u32 {
        loop {
            self.last_id = self.last_id.wrapping_add(1).max(1);
            if !self.unanswered.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    pub(super) fn insert(&mut self, id: u32, now: Instant, operation: O, deadline: Option<Instant>) {
        self.deadlines.extend(deadline.map(|deadline| (deadline, id)));
        let unanswered =
            Unanswered { operation: Some(operation), submitted: now, deadline, withdrawn: false };
        self.unanswered.insert(id, unanswered);
    }

    /// Returns whether to notify the server.
    pub(super) fn withdraw(&mut self, id: u32) -> bool {
        let Some(request) = self.unanswered.get_mut(&id) else { return false };
        if let Some(deadline) = request.deadline.take() {
            self.deadlines.remove(&(deadline, id));
        }
        !std::mem::replace(&mut request.withdrawn, true)
    }

    /// Records a reply. `None` if the deadline has already ended the request.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        id: u32,
        reply: Result<&[u8], ErrorCode>,
    ) -> Result<Option<Completion<O>>, SessionError> {
        let request = self.unanswered.remove(&id).ok_or(Violation::UnknownReply(id))?;
        if let Some(deadline) = request.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        let Some(operation) = request.operation else { return Ok(None) };
        let outcome = match reply {
            _ if request.withdrawn => Outcome::Withdrawn { computed: reply.is_ok() },
            Err(error) => Outcome::Refused(error),
            Ok(result) if operation.accepts(result) => Outcome::Computed(Zeroizing::new(result.to_vec())),
            Ok(_) => {
                let error = SessionError::WrongResult(operation.request(id).key);
                // Nothing has been computed: another server may compute it.
                let unanswered = Unanswered { operation: Some(operation), deadline: None, ..request };
                self.unanswered.insert(id, unanswered);
                return Err(error);
            }
        };
        let took = now.saturating_duration_since(request.submitted);
        Ok(Some(Completion { operation, took, outcome }))
    }

    /// Removes a request with an expired deadline, and returns it with its id.
    pub(super) fn expire_one(&mut self, now: Instant) -> Option<(u32, Completion<O>)> {
        self.next_deadline().filter(|deadline| *deadline <= now)?;
        let (_, id) = self.deadlines.pop_first()?;
        let request = self.unanswered.get_mut(&id)?;
        request.deadline = None;
        request.withdrawn = true;
        let took = now.saturating_duration_since(request.submitted);
        Some((id, Completion { operation: request.operation.take()?, took, outcome: Outcome::Expired }))
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Returns the open operations that have not been withdrawn, in the order of submission.
    pub(super) fn into_operations(self) -> Vec<O> {
        let mut waiting: Vec<_> =
            self.unanswered.into_iter().filter(|(_, request)| !request.withdrawn).collect();
        waiting.sort_by_key(|(id, request)| (request.submitted, *id));
        waiting.into_iter().filter_map(|(_, request)| request.operation).collect()
    }
}
