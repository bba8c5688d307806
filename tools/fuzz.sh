#!/usr/bin/env bash
# Runs each fuzz test of the module for the given time, one after the other,
# because go test takes one at a time.
set -euo pipefail
cd "$(dirname "$0")/.."
duration=${1:?usage: tools/fuzz.sh DURATION}

grep -rHoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' acceptance bench cmd internal |
	while IFS=: read -r file func; do
		go test "./$(dirname "$file")" -run '^$' -fuzz "^${func#func }\$" -fuzztime "$duration" </dev/null
	done
