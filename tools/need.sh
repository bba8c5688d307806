#!/usr/bin/env bash
# Checks that the programs that the tests start are there. Prometheus, promtool, nginx
# and Caddy are fetched from Debian's packages into bin/ where they are missing: only
# these files are taken out of the packages, so no service is installed or started.
# Chromium and systemd-analyze are installed when root runs this. Whatever else is
# missing is named, and the exit code is 1.
set -uo pipefail
cd "${0%/*}/.." || exit 1
mkdir -p bin
PATH="$PWD/bin:$PATH"

# fetch PROGRAM PACKAGE FOLDER has one program of a Debian package in bin/.
fetch() {
	command -v "$1" >/dev/null && return
	take "$@" </dev/null >&2 && return
	echo "missing: $1; install it (Debian: apt-get install $2) and run make test again" >&2
	missing=1
}

take() (
	folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && bin=$PWD/bin && cd "$folder" &&
		# Package lists may be absent or old; only root can fetch new ones.
		{ apt-get download "$2" || { apt-get update && apt-get download "$2"; }; } &&
		dpkg-deb --fsys-tarfile "$2"_*.deb | tar -x --strip-components=3 "./usr/$3/$1" &&
		mv "$1" "$bin/$1"
)

# debian PROGRAM PACKAGE has a program installed where that can be done.
debian() {
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		{ apt-get install -y "$2" || { apt-get update && apt-get install -y "$2"; }; } </dev/null >&2
	fi
	command -v "$1" >/dev/null && return
	echo "missing: $1; install it (Debian: apt-get install $2) and run make test again" >&2
	missing=1
}

missing=0
fetch promtool prometheus bin
fetch prometheus prometheus bin
fetch nginx nginx sbin
fetch caddy caddy bin
for program in git gcc setsid script node npm; do # setsid and script: of util-linux
	if ! command -v "$program" >/dev/null; then
		echo "missing: $program; install it and run make test again" >&2
		missing=1
	fi
done
debian chromium chromium
debian systemd-analyze systemd
if command -v node >/dev/null && [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
	echo "missing: Node.js 20 or newer; this one is $(node --version)" >&2
	missing=1
fi
exit "$missing"
