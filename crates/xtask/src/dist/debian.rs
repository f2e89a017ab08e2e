//! A Debian package: an `ar` archive of two tarballs.

use super::about::{SUMMARY, VERSION};
use super::archive::{Entry, tar_gz, time};
use super::binary::Binary;
use super::release::Release;

pub(crate) fn file_name(binary: &Binary) -> String {
    format!("memlocal_{VERSION}_{}.deb", binary.short_architecture())
}

pub(crate) fn build(release: &Release) -> Result<Vec<u8>, String> {
    let mut data = vec![Entry::program("usr/bin/memlocal", release.binary.bytes.clone())];
    // The unit in the repository is for a binary that was installed by hand.
    let unit = String::from_utf8_lossy(&release.file("contrib/memlocal.service")?.bytes)
        .replace("/usr/local/bin/", "/usr/bin/");
    data.push(Entry::file("usr/lib/systemd/system/memlocal.service", unit));
    let docs = "usr/share/doc/memlocal";
    data.push(release.file("README.md")?.below(docs));
    data.push(release.file("THIRD-PARTY.md")?.below(docs));
    data.push(release.file("ADAPTER.md")?.below(docs));
    let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| release.file(name).map(|file| file.bytes.clone()));
    data.push(Entry::file(&format!("{docs}/copyright"), licences.into_iter().collect::<Result<Vec<_>, _>>()?.concat()));
    data.extend(
        release.below("man/").map(|page| page.at(format!("usr/share/man/man1/{}", &page.path["man/".len()..]))),
    );
    let completions = [
        ("completions/memlocal.bash", "usr/share/bash-completion/completions/memlocal"),
        ("completions/memlocal.zsh", "usr/share/zsh/vendor-completions/_memlocal"),
        ("completions/memlocal.fish", "usr/share/fish/vendor_completions.d/memlocal.fish"),
    ];
    for (name, path) in completions {
        data.push(release.file(name)?.at(path.to_owned()));
    }
    let kilobytes = data.iter().map(|entry| entry.bytes.len()).sum::<usize>().div_ceil(1024);
    let libc = release
        .binary
        .glibc
        .map(|(major, minor)| format!("Depends: libc6 (>= {major}.{minor}), libstdc++6, libgcc-s1\n"));
    let control = format!(
        "Package: memlocal\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: the authors of memlocal <memlocal@localhost>\n\
         Installed-Size: {kilobytes}\n{}Section: utils\nPriority: optional\nDescription: {SUMMARY}\n",
        release.binary.short_architecture(),
        libc.unwrap_or_default()
    );
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", tar_gz(&[Entry::file("control", control)])?),
        ("data.tar.gz", tar_gz(&data)?),
    ];
    let mut package = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        package.extend(
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", time(), 0, 0, "100644", bytes.len()).into_bytes(),
        );
        package.extend_from_slice(&bytes);
        if bytes.len() % 2 == 1 {
            package.push(b'\n');
        }
    }
    Ok(package)
}
