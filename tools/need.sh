#!/usr/bin/env bash
# Checks that the programs that the tests start are there. promtool is fetched
# from Debian's package into bin/ where it is missing: only that file is taken
# out of the package, so no service is installed or started. Chromium is installed when
# root runs this. Whatever else is missing is named, and the exit code is 1.
set -uo pipefail
cd "${0%/*}/.." || exit 1
mkdir -p bin
PATH="$PWD/bin:$PATH"

fetch_promtool() (
	folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && bin=$PWD/bin && cd "$folder" &&
		# Package lists may be absent or old; only root can fetch new ones.
		{ apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } &&
		dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool &&
		mv promtool "$bin/promtool"
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
if ! command -v promtool >/dev/null && ! fetch_promtool </dev/null >&2; then
	echo "missing: promtool; install Prometheus 2.40 or newer (Debian: apt-get install prometheus)" >&2
	missing=1
fi
for program in git gcc setsid node npm; do # setsid: of util-linux
	if ! command -v "$program" >/dev/null; then
		echo "missing: $program; install it and run make test again" >&2
		missing=1
	fi
done
debian chromium chromium
if command -v node >/dev/null && [ "$(node -p 'parseInt(process.versions.node)')" -lt 20 ]; then
	echo "missing: Node.js 20 or newer; this one is $(node --version)" >&2
	missing=1
fi
exit "$missing"
