//! HTTP/3's side of a connection (RFC 9114): which requests have come, and how it is told to end.

use super::{
    Code,
    link::{Link, State},
    priority::Priority,
    streams::{RequestBytes, ResponseStream},
};
use quiche::h3::{self, Event, Header};
use std::task::Poll;

/// The largest id that a client's stream can have: it says that the connection will end, and refuses nothing yet (RFC 9114
/// section 5.2).
const ANY_STREAM: u64 = (1 << 62) - 4;

/// A request that has come.
pub(crate) struct Received {
    pub(crate) head: Vec<Header>,
    pub(crate) body: RequestBytes,
    pub(crate) response: ResponseStream,
}

impl Link {
    /// Begins to speak HTTP/3, with headers of so many bytes at most. False if the connection is over.
    pub(crate) fn begin_http(&self, header_limit: u32) -> bool {
        let mut state = self.state();
        let Ok(mut config) = h3::Config::new() else { return false };
        config.set_max_field_section_size(header_limit.into());
        config.enable_extended_connect(true);
        state.http = h3::Connection::with_transport(&mut state.quic, &config).ok();
        state.http.is_some()
    }

    /// The next request; `None` once the connection is over. Between requests it reads what belongs to others.
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
                    tracing::debug!(%error, "an HTTP/3 connection has failed");
                    // quiche has closed it already, if it was for what the client has sent.
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
                // Of streams that nobody is interested in any more.
                _ => {}
            }
        }
    }

    /// Whether something was read or written since it was last driven, so that there may be more to read.
    pub(crate) fn has_moved(&self) -> bool {
        std::mem::take(&mut self.state().dirty)
    }

    /// Tells the client to come again by another connection. False if there is no room for that now.
    pub(crate) fn say_goodbye(&self) -> bool {
        let mut state = self.state();
        let State { quic, http: Some(http), .. } = &mut *state else { return true };
        let said = http.send_goaway(quic, ANY_STREAM);
        state.touch();
        !matches!(said, Err(h3::Error::StreamBlocked))
    }
}

/// What an event says of the priority of a request, which may be under way already. A frame about one that has not come yet
/// waits for it, and counts for more than its header.
fn said_priority(http: &mut h3::Connection, id: u64, event: &Event, is_under_way: bool) -> Option<Priority> {
    let mut update = || http.take_last_priority_update(id).ok().map(|value| Priority::read(&value));
    match event {
        Event::Headers { list, .. } if !is_under_way => update().or_else(|| Priority::of_header(list)),
        Event::PriorityUpdate if is_under_way => update(),
        _ => None,
    }
}
