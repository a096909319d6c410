//! Lines of the access log with their own format, which are complete when they arrive here.

use quadrille_gateway::ACCESS_LOG_LINE;
use std::fmt;
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext,
        format::{FormatEvent, FormatFields, Writer},
    },
    registry::LookupSpan,
};

/// Writes events with a complete line unchanged, and others in the inner format.
pub(super) struct AccessFormat<F>(pub(super) F);

impl<S, N, F> FormatEvent<S, N> for AccessFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if event.metadata().fields().field(ACCESS_LOG_LINE).is_none() {
            return self.0.format_event(context, writer, event);
        }
        let mut line = Line { writer, result: Ok(()) };
        event.record(&mut line);
        line.result.and_then(|()| line.writer.write_char('\n'))
    }
}

struct Line<'a> {
    writer: Writer<'a>,
    result: fmt::Result,
}

impl Visit for Line<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == ACCESS_LOG_LINE {
            self.result = self.result.and_then(|()| self.writer.write_str(value));
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
