#!/usr/bin/env bash
# Checks that the programs that the tests start are there. promtool is fetched
# from Debian's package into bin/ where it is missing: only that file is taken
# out of the package, so no service is installed or started. Whatever else is
# missing is named, and the exit code is 1.
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
exit "$missing"
