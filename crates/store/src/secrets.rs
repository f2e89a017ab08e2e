//! Passwords in addresses: removed from all text that is shown, logged or written.

/// The text without the users and passwords of addresses in it (`postgres://USER:PASSWORD@HOST`) and without the values
/// of `password=`. For single command-line arguments, messages and log lines.
pub fn without_secrets(text: &str) -> String {
    without_assigned(&without_users(text))
}

/// Removes the text between `://` and the last `@` of the same address.
fn without_users(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        shown.push_str(before);
        let end = address.find(|c: char| c.is_whitespace() || "\"'`<>".contains(c)).unwrap_or(address.len());
        rest = &address[user_bytes(&address[..end], before.ends_with("http://") || before.ends_with("https://"))..];
    }
    shown + rest
}

/// Length in bytes of the user and password at the start of an address whose scheme was removed.
fn user_bytes(address: &str, is_http: bool) -> usize {
    let Some(last) = address.rfind('@') else { return 0 };
    let host_end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let port = address[..host_end].rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) || address[..host_end].ends_with(']');
    // An HTTP path may contain an `@`; an unencoded password may contain a `/`.
    let user_end = if is_http && is_port { address[..host_end].rfind('@') } else { Some(last) };
    user_end.map_or(0, |at| at + 1)
}

/// Replaces the values of `password=`, as in PostgreSQL keywords and URL parameters.
fn without_assigned(text: &str) -> String {
    const NAME: &str = "password";
    // ASCII lower-casing keeps byte positions, so positions are valid in both texts.
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let mut from = 0;
    while let Some(at) = lower[from..].find(NAME).map(|at| from + at + NAME.len()) {
        let after = text[at..].trim_start();
        shown.push_str(&text[from..at]);
        from = at;
        if let Some(value) = after.strip_prefix('=').map(str::trim_start) {
            shown.push_str("=***");
            from = text.len() - value.len() + value_bytes(value);
        }
    }
    shown + &text[from..]
}

/// Length in bytes of a value: up to its closing quote, or to the end of the word or parameter.
fn value_bytes(value: &str) -> usize {
    match value.strip_prefix('\'') {
        Some(quoted) => {
            let mut escaped = false;
            let end = quoted.find(|c: char| {
                let closes = c == '\'' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            });
            end.map_or(value.len(), |end| end + 2)
        }
        None => value.find(|c: char| c.is_whitespace() || "&\"`".contains(c)).unwrap_or(value.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::without_secrets;

    #[test]
    fn addresses_are_shown_without_users_and_passwords() {
        let check = |text: &str, shown: &str| assert_eq!(without_secrets(text), shown);
        check("ingest", "ingest");
        check("ann@example.org", "ann@example.org");
        check("postgres://ann:se@cret@10.0.0.5/memory", "postgres://10.0.0.5/memory");
        check("postgres://ann:se/cr?et@10.0.0.5/memory", "postgres://10.0.0.5/memory");
        check("--vectors=postgres://ann:secret@10.0.0.5", "--vectors=postgres://10.0.0.5");
        check("http://10.0.0.5/a@b", "http://10.0.0.5/a@b");
        check("http://10.0.0.5:80/a@b", "http://10.0.0.5:80/a@b");
        check("http://[::1]/a@b", "http://[::1]/a@b");
        check("http://ann:secret@10.0.0.5:80/a", "http://10.0.0.5:80/a");
        check("http://ann:se/cret@10.0.0.5/a", "http://10.0.0.5/a");
        check(
            "cannot reach `postgres://a:b@h/d`, nor http://c:d@i: no",
            "cannot reach `postgres://h/d`, nor http://i: no",
        );
    }

    #[test]
    fn values_of_passwords_are_not_shown() {
        let check = |text: &str, shown: &str| assert_eq!(without_secrets(text), shown);
        check("postgres://h/m?user=ann&password=secret&a=b", "postgres://h/m?user=ann&password=***&a=b");
        check("host=h user=ann PASSWORD = 'my \\' secret' port=5", "host=h user=ann PASSWORD=*** port=5");
        check("PGPASSWORD=secret", "PGPASSWORD=***");
        check("password authentication failed", "password authentication failed");
        check("its password='open", "its password=***");
    }
}
