//! Formats of JSON Schema 2020-12 as regular expressions.

/// Formats that llguidance supports and that need no narrowing.
pub(super) const ENFORCED: [&str; 5] = ["duration", "ipv4", "ipv6", "uuid", "uri"];

/// A date, including 29 February in leap years (RFC 3339, 5.6 and appendix C).
const DATE: &str = "([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)\
    |02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";

/// Without leap seconds: whether one occurred is not a regular property.
const TIME: &str = "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?([zZ]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])";

/// An address without quoted parts or literals in brackets (RFC 5321, 4.1.2), and its lengths (4.5.3.1).
const MAILBOX: &str = "^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*\
    @[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?){0,3}$";
const LOCAL_PART: &str = "^[^@]{1,64}@";

/// A name without two hyphens in a row: what follows them in `xn--` is subject to rules that are not regular.
const HOSTNAME: &str = "^[A-Za-z0-9]+(-[A-Za-z0-9]+)*(\\.[A-Za-z0-9]+(-[A-Za-z0-9]+)*)*$";
/// Lengths of labels and, with them, of the name (RFC 1035, 2.3.4).
const LABELS: &str = "^[^.]{1,62}(\\.[^.]{1,62}){0,3}$";

/// Characters of a URI that need no context (RFC 3986, 2.2 and 2.3), or any percent-encoded byte.
const PATH: &str = "([A-Za-z0-9._~!$&'()*+,;=@-]|%[0-9A-Fa-f]{2})";

const JSON_POINTER: &str = "(/([^~/]|~[01])*)*";

/// Patterns that together define a format: a value that matches all of them has it. None if llguidance supports the
/// format, or it is unknown.
pub(super) fn patterns(format: &str) -> Vec<String> {
    match format {
        "date" => vec![format!("^{DATE}$")],
        "time" => vec![format!("^{TIME}$")],
        "date-time" => vec![format!("^{DATE}[tT]{TIME}$")],
        "email" | "idn-email" => vec![MAILBOX.into(), LOCAL_PART.into()],
        "hostname" | "idn-hostname" => vec![HOSTNAME.into(), LABELS.into()],
        "uri-reference" | "iri-reference" | "uri-template" => {
            vec![format!("^(https?://[A-Za-z0-9.-]+)?(/({PATH}+(/{PATH}*)*)?)?(\\?{PATH}*)?(#{PATH}*)?$")]
        }
        "iri" => vec![format!("^https?://{PATH}+(/{PATH}*)*(\\?{PATH}*)?(#{PATH}*)?$")],
        "json-pointer" => vec![format!("^{JSON_POINTER}$")],
        "relative-json-pointer" => vec![format!("^(0|[1-9][0-9]*)(#|{JSON_POINTER})$")],
        _ => Vec::new(),
    }
}
