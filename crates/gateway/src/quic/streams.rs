//! Request streams of a connection: request bodies and responses. Both access quiche directly, so that flow control
//! applies: data that is not read here is not sent by the client (RFC 9000 section 4).

use super::{
    Code,
    link::{Link, State},
    priority::Priority,
    stream_state::StreamState,
};
use bytes::Bytes;
use quiche::{
    Shutdown,
    h3::{self, Error, Header},
};
use std::{
    cell::RefCell,
    task::{Context, Poll},
    time::{Duration, Instant},
};

/// Size of a read, and of its parts.
const PIECE: usize = 64 * 1024;
const PART: usize = 4 * 1024;

/// Time after which no further part is read. Bytes of large frames are all read by then.
const LONGEST_READ: Duration = Duration::from_micros(200);

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE].into());
}

/// Body of a request.
pub(crate) struct RequestBytes {
    link: Link,
    id: u64,
}

/// Stream of a response.
pub(crate) struct ResponseStream {
    link: Link,
    id: u64,
    begun: bool,
    ended: bool,
}

/// The client has reset the stream or disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the client has canceled the request")]
pub(crate) struct StreamError;

impl State {
    /// Registers a new request; `ended` is whether it consists of the header only.
    pub(super) fn open(
        &mut self,
        link: &Link,
        id: u64,
        ended: bool,
        priority: Priority,
    ) -> (RequestBytes, ResponseStream) {
        self.streams.insert(id, StreamState { priority, ended, held: 2, ..StreamState::default() });
        let link = link.clone();
        (RequestBytes { link: link.clone(), id }, ResponseStream { link, id, begun: false, ended: false })
    }

    fn let_go(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.held -= 1;
            if stream.held == 0 {
                self.streams.remove(&id);
            }
        }
    }
}

/// Reads data in parts until none is left, and starts no part after [`LONGEST_READ`], because each byte may be a
/// frame of its own.
fn read_for_a_while(
    scratch: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> h3::Result<usize>,
) -> h3::Result<usize> {
    let (began, mut length) = (Instant::now(), 0);
    while length < scratch.len() && (length == 0 || began.elapsed() < LONGEST_READ) {
        let end = scratch.len().min(length + PART);
        match read(&mut scratch[length..end]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if length == 0 => return Err(error),
            // The next call returns the error.
            Err(_) => break,
        }
    }
    Ok(length)
}

impl RequestBytes {
    /// Returns the next piece; `None` at the end.
    pub(crate) fn poll_data(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let mut state = self.link.state();
        let State { quic, http: Some(http), streams, .. } = &mut *state else {
            return Poll::Ready(Some(Err(StreamError)));
        };
        let Some(stream) = streams.get_mut(&self.id) else { return Poll::Ready(None) };
        if stream.ended {
            return Poll::Ready(None);
        }
        let read = SCRATCH.with_borrow_mut(|scratch| {
            read_for_a_while(scratch, |part| http.recv_body(quic, self.id, part))
                .map(|count| Bytes::copy_from_slice(&scratch[..count]))
        });
        let outcome = match read {
            Ok(data) => Poll::Ready(Some(Ok(data))),
            Err(Error::Done) if !stream.reset => {
                stream.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Err(_) => return Poll::Ready(Some(Err(StreamError))),
        };
        // The client may send more now, and the next event may follow.
        state.touch();
        outcome
    }

    /// Takes the trailers.
    pub(crate) fn take_trailers(&self) -> Option<Vec<Header>> {
        self.link.state().streams.get_mut(&self.id)?.trailers.take()
    }

    /// Returns whether the body was read completely.
    pub(crate) fn is_ended(&self) -> bool {
        self.link.state().streams.get(&self.id).is_none_or(|stream| stream.ended && stream.trailers.is_none())
    }
}

impl Drop for RequestBytes {
    fn drop(&mut self) {
        let mut state = self.link.state();
        let unread = state.streams.get(&self.id).is_some_and(|stream| !stream.ended && !stream.reset);
        if unread {
            // The response continues without the body (RFC 9114 section 4.1).
            let _ = state.quic.stream_shutdown(self.id, Shutdown::Read, Code::NoError.value());
            state.touch();
        }
        state.let_go(self.id);
    }
}

impl ResponseStream {
    /// Becomes ready once the client has canceled the request.
    pub(crate) fn poll_reset(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.link.state();
        match state.streams.get_mut(&self.id).filter(|stream| !stream.reset) {
            Some(stream) => {
                stream.writer = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }

    /// Sends a header; another one follows an informational response. Waits for room for all of it.
    pub(crate) fn poll_head(
        &mut self,
        context: &mut Context<'_>,
        head: &[Header],
        last: bool,
    ) -> Poll<Result<(), StreamError>> {
        let begun = self.begun;
        let priority = self.priority();
        let sent = self.poll_send(context, |http, quic, id| match begun {
            false => http.send_response_with_priority(quic, id, head, &priority.of_response(), last),
            true => http.send_additional_headers(quic, id, head, false, last),
        });
        self.begun |= matches!(sent, Poll::Ready(Ok(())));
        self.ended |= last && matches!(sent, Poll::Ready(Ok(())));
        sent
    }

    fn priority(&self) -> Priority {
        self.link.state().streams.get(&self.id).map_or_else(Priority::default, |stream| stream.priority)
    }

    /// Sends as much data as there is room for, and removes it; ready when all is sent.
    pub(crate) fn poll_data(
        &mut self,
        context: &mut Context<'_>,
        data: &mut Bytes,
        last: bool,
    ) -> Poll<Result<(), StreamError>> {
        while !data.is_empty() || (last && !self.ended) {
            let sent = self.poll_send(context, |http, quic, id| http.send_body(quic, id, data, last));
            let count = std::task::ready!(sent)?;
            let _ = data.split_to(count);
            self.ended |= last && data.is_empty();
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the trailers, if any, and the end of the stream.
    pub(crate) fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
        trailers: &[Header],
    ) -> Poll<Result<(), StreamError>> {
        let sent = self.poll_send(context, |http, quic, id| {
            http.send_additional_headers(quic, id, trailers, true, true)
        });
        self.ended |= matches!(sent, Poll::Ready(Ok(())));
        sent
    }

    /// Resets the response, and the rest of the request.
    pub(crate) fn reset(&mut self, code: Code) {
        self.ended = true;
        let mut state = self.link.state();
        let _ = state.quic.stream_shutdown(self.id, Shutdown::Write, code.value());
        let _ = state.quic.stream_shutdown(self.id, Shutdown::Read, code.value());
        state.touch();
    }

    fn poll_send<T>(
        &self,
        context: &mut Context<'_>,
        send: impl FnOnce(&mut quiche::h3::Connection, &mut quiche::Connection, u64) -> quiche::h3::Result<T>,
    ) -> Poll<Result<T, StreamError>> {
        let mut state = self.link.state();
        let State { quic, http: Some(http), streams, .. } = &mut *state else {
            return Poll::Ready(Err(StreamError));
        };
        let Some(stream) = streams.get_mut(&self.id).filter(|stream| !stream.reset) else {
            return Poll::Ready(Err(StreamError));
        };
        let outcome = match send(http, quic, self.id) {
            Ok(sent) => Poll::Ready(Ok(sent)),
            Err(Error::Done | Error::StreamBlocked) => {
                stream.writer = Some(context.waker().clone());
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(StreamError)),
        };
        state.touch();
        outcome
    }
}

impl Drop for ResponseStream {
    fn drop(&mut self) {
        if !self.ended {
            self.reset(Code::RequestCancelled);
        }
        self.link.state().let_go(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_read_follow_each_other() {
        let mut scratch = vec![0; 3 * PART];
        let mut number = 0;
        let read = read_for_a_while(&mut scratch, |part| {
            number += 1;
            part[0] = number;
            if number == 3 { Err(Error::Done) } else { Ok(1) }
        });
        // A slow machine reads the first part only.
        assert!(matches!(read, Ok(1 | 2)), "{read:?}");
        assert_eq!(scratch[0], 1);
        assert_eq!(scratch[1], if read == Ok(2) { 2 } else { 0 });
    }

    #[test]
    fn an_error_before_the_first_byte_is_returned() {
        let read = read_for_a_while(&mut [0; 8], |_| Err(Error::Done));
        assert_eq!(read, Err(Error::Done));
    }
}
