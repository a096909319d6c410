//! Requests on open connections, as rows for programs and tables for a terminal.

mod row;
mod table;

pub use self::{
    row::{ProxiedRow, Ratios, RequestFindings, RequestRow, proxied_rows, request_rows},
    table::{proxied_table, request_table},
};
