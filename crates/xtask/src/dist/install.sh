#!/bin/sh
# Installs memlocal from the files of a release: sh install.sh [FOLDER|URL] [PREFIX]
# FOLDER|URL holds the tarball and SHA256SUMS [default: the folder of this script]; PREFIX is ~/.local by default.
set -eu

from=${1:-$(dirname "$0")}
prefix=${2:-$HOME/.local}
machine=$(uname -m)

fail() {
    echo "error: $1" >&2
    echo "hint: $2" >&2
    exit 1
}

[ "$(uname -s)" = Linux ] || fail "this installer is for Linux" "build from source: docs/quickstart.md"
case $machine in
    x86_64 | aarch64) ;;
    *) fail "there is no build for $machine" "build from source: docs/quickstart.md" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

get() {
    case $from in
        http://* | https://*) curl -fsSL "$from/$1" -o "$work/$1" ;;
        *) cp "$from/$1" "$work/$1" ;;
    esac || fail "cannot get $1 from $from" "name the folder or address of a release: sh install.sh FOLDER|URL"
}

get SHA256SUMS
tarball=$(sed -n "s/^[0-9a-f]*  \(memlocal-[^/]*-$machine-linux\.tar\.gz\)$/\1/p" "$work/SHA256SUMS" | head -n 1)
[ -n "$tarball" ] || fail "the release has no build for $machine" "build from source: docs/quickstart.md"
get "$tarball"
grep -F "  $tarball" "$work/SHA256SUMS" >"$work/sum"
(cd "$work" && sha256sum -c sum >/dev/null 2>&1) || fail "$tarball has another digest than SHA256SUMS says" "get it again"

tar -xzf "$work/$tarball" -C "$work"
unpacked=$work/${tarball%.tar.gz}
mkdir -p "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d" "$prefix/share/doc/memlocal"
cp "$unpacked/memlocal" "$prefix/bin/.memlocal.new"
chmod 755 "$prefix/bin/.memlocal.new"
mv "$prefix/bin/.memlocal.new" "$prefix/bin/memlocal"
cp "$unpacked"/man/*.1 "$prefix/share/man/man1/"
cp "$unpacked/completions/memlocal.bash" "$prefix/share/bash-completion/completions/memlocal"
cp "$unpacked/completions/memlocal.zsh" "$prefix/share/zsh/site-functions/_memlocal"
cp "$unpacked/completions/memlocal.fish" "$prefix/share/fish/vendor_completions.d/memlocal.fish"
cp "$unpacked"/LICENSE-* "$unpacked/THIRD-PARTY.md" "$unpacked/ADAPTER.md" "$unpacked/contrib/memlocal.service" "$prefix/share/doc/memlocal/"
"$prefix/bin/memlocal" --version
echo "installed $prefix/bin/memlocal"
case :$PATH: in
    *":$prefix/bin:"*) ;;
    *) echo "hint: add $prefix/bin to PATH" ;;
esac
