//! Status codes with names in Envoy.

use crate::{
    reader::{Field, ReadMessage},
    schema,
    values::enumeration,
};

/// Values of `envoy.type.v3.StatusCode` that are valid for responses.
const STATUS_CODES: &[(&str, u32, u16)] = &[
    ("OK", 200, 200),
    ("BadRequest", 400, 400),
    ("Unauthorized", 401, 401),
    ("PaymentRequired", 402, 402),
    ("Forbidden", 403, 403),
    ("NotFound", 404, 404),
    ("MethodNotAllowed", 405, 405),
    ("NotAcceptable", 406, 406),
    ("ProxyAuthenticationRequired", 407, 407),
    ("RequestTimeout", 408, 408),
    ("Conflict", 409, 409),
    ("Gone", 410, 410),
    ("TooManyRequests", 429, 429),
    ("InternalServerError", 500, 500),
    ("NotImplemented", 501, 501),
    ("BadGateway", 502, 502),
    ("ServiceUnavailable", 503, 503),
    ("GatewayTimeout", 504, 504),
];

/// Reads `envoy.type.v3.HttpStatus`.
pub(crate) fn status_code(field: &Field<'_>) -> Option<u16> {
    field.message(&schema::HTTP_STATUS)?.require("code")?.parse(enumeration(STATUS_CODES))
}
