#!/bin/sh
# Writes the root file system of a base image to standard output, as a tar archive, where no image can be pulled:
# Debian bookworm with its Python 3.11 and pip, from the distribution's own packages, their signatures checked.
#   sudo docker/base.sh >base.tar && docker import base.tar my-base
# MIRROR=URL takes the packages from elsewhere than debootstrap's own default.
set -eu
suite=bookworm
packages=python3,python3-pip
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

fail() { printf '%s\n' "base.sh: $*" >&2; exit 4; }

[ -t 1 ] && fail "standard output is a terminal; write the archive into a file: docker/base.sh >base.tar"
[ "$(uname -s)" = Linux ] || fail "a base can be made on Linux only; elsewhere name an image: chaos images build --base-image IMAGE"
[ "$(id -u)" = 0 ] || fail "debootstrap needs root; run it with sudo, or name an image: chaos images build --base-image IMAGE"
command -v debootstrap >/dev/null || fail "debootstrap is not installed; on Debian or Ubuntu: apt-get install debootstrap debian-archive-keyring"
[ -e "$keyring" ] || fail "$keyring is missing, so signatures cannot be checked: apt-get install debian-archive-keyring"

root=$(mktemp -d "${TMPDIR:-/tmp}/kafka-chaos-base.XXXXXX")
trap 'rm -rf --one-file-system "$root"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" --include="$packages" \
    "$suite" "$root" ${MIRROR:+"$MIRROR"} >&2 ||
    fail "debootstrap failed; the lines above say why"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
find "$root/usr/share/doc" "$root/usr/share/man" "$root/usr/share/locale" "$root/usr/share/info" -type f -delete
tar --numeric-owner --one-file-system -C "$root" -c .
