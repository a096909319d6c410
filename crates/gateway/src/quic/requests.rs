//! HTTP/3 connection (RFC 9114): incoming requests, and GOAWAY.

use super::{
    Code,
    link::{Link, State},
    priority::Priority,
    streams::{RequestBytes, ResponseStream},
};
use quiche::h3::{self, Event, Header};
use std::task::Poll;

/// Maximum ID of a client's stream: a GOAWAY with it announces the end of the connection, and does not reject any
/// request yet (RFC 9114 section 5.2).
const ANY_STREAM: u64 = (1 << 62) - 4;

/// A received request.
pub(crate) struct Received {
    pub(crate) head: Vec<Header>,
    pub(crate) body: RequestBytes,
    pub(crate) response: ResponseStream,
}

impl Link {
    /// Starts HTTP/3 with this limit of header bytes. Returns false if the connection has ended.
    pub(crate) fn begin_http(&self, header_limit: u32) -> bool {
        let mut state = self.state();
        let Ok(mut config) = h3::Config::new() else { return false };
        config.set_max_field_section_size(header_limit.into());
        config.enable_extended_connect(true);
        state.http = h3::Connection::with_transport(&mut state.quic, &config).ok();
        state.http.is_some()
    }

    /// Returns the next request; `None` once the connection has ended. Also processes events of requests in progress.
    /// To be polled by the task that drives the connection.
    pub(crate) fn poll_request(&self) -> Poll<Option<Received>> {
        let mut state = self.state();
        loop {
            if state.closed().is_some() {
                return Poll::Ready(None);
            }
            let State { quic, http: Some(http), streams, .. } = &mut *state else {
                return Poll::Ready(None);
            };
            let (id, event) = match http.poll(quic) {
                Ok(event) => event,
                Err(h3::Error::Done) => return Poll::Pending,
                Err(error) => {
                    tracing::debug!(%error, "HTTP/3 connection failed");
                    // quiche has closed it already if the client's data is the reason.
                    let _ = state.quic.close(true, Code::InternalError.value(), b"");
                    return Poll::Ready(None);
                }
            };
            let priority = said_priority(http, id, &event, streams.contains_key(&id));
            if let (Some(priority), Some(stream)) = (priority, streams.get_mut(&id)) {
                stream.priority = priority;
                priority.apply(quic, id);
            }
            match (event, state.streams.get_mut(&id)) {
                (Event::Headers { list, .. }, Some(stream)) => stream.take_trailers(list),
                (Event::Headers { list, more_frames }, None) => {
                    let (body, response) = state.open(self, id, !more_frames, priority.unwrap_or_default());
                    return Poll::Ready(Some(Received { head: list, body, response }));
                }
                (Event::Data, Some(stream)) => stream.wake_reader(),
                (Event::Finished, Some(stream)) => stream.finish(),
                (Event::Reset(_), Some(stream)) => stream.reset(),
                // Events of streams that are no longer in use.
                _ => {}
            }
        }
    }

    /// Returns whether data was read or written since the last drive, so that there may be more to read.
    pub(crate) fn has_moved(&self) -> bool {
        std::mem::take(&mut self.state().dirty)
    }

    /// Sends GOAWAY. Returns false if there is no room for it now.
    pub(crate) fn say_goodbye(&self) -> bool {
        let mut state = self.state();
        let State { quic, http: Some(http), .. } = &mut *state else { return true };
        let said = http.send_goaway(quic, ANY_STREAM);
        state.touch();
        !matches!(said, Err(h3::Error::StreamBlocked))
    }
}

/// Returns the priority that an event sets for a request in progress. A frame about a request that has not arrived
/// yet is kept, and takes precedence over its header.
fn said_priority(http: &mut h3::Connection, id: u64, event: &Event, is_under_way: bool) -> Option<Priority> {
    let mut update = || http.take_last_priority_update(id).ok().map(|value| Priority::read(&value));
    match event {
        Event::Headers { list, .. } if !is_under_way => update().or_else(|| Priority::of_header(list)),
        Event::PriorityUpdate if is_under_way => update(),
        _ => None,
    }
}
