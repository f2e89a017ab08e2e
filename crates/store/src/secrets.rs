//! Passwords in addresses: taken out of everything that is shown, logged or written.

/// The text without users and passwords of addresses in it (`postgres://USER:PASSWORD@HOST`) and without the values of
/// `password=`. It is meant for single words of a command line, for messages and for lines of logs alike.
pub fn without_secrets(text: &str) -> String {
    without_assigned(&without_users(text))
}

/// Removes what stands between `://` and the last `@` that belongs to it.
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

/// Bytes of an address, without its scheme, that name a user and a password.
fn user_bytes(address: &str, is_http: bool) -> usize {
    let Some(last) = address.rfind('@') else { return 0 };
    let host_end = address.find(['/', '?', '#']).unwrap_or(address.len());
    let port = address[..host_end].rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) || address[..host_end].ends_with(']');
    // A path of HTTP may have an `@`; a password that was not encoded may have a `/`.
    let user_end = if is_http && is_port { address[..host_end].rfind('@') } else { Some(last) };
    user_end.map_or(0, |at| at + 1)
}

/// Replaces the values of `password=`, as in keywords of PostgreSQL and parameters of addresses.
fn without_assigned(text: &str) -> String {
    const NAME: &str = "password";
    // Letters of ASCII change case in place, so that places in both texts are the same.
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

/// Bytes of a value: to its closing quote, or to the end of the word or parameter.
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
