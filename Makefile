# Everything that is done to this project: `make help` lists it.

SHELL       := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

# Tools live in bin/, their caches in .cache/: both are ignored by git.
export PATH := $(CURDIR)/bin:$(PATH)
export GOLANGCI_LINT_CACHE := $(CURDIR)/.cache/golangci-lint

LINT := bin/golangci-lint
FUZZ_TIME := 10s

.PHONY: help
help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/server, a static binary
	CGO_ENABLED=0 go build -trimpath -o bin/server ./cmd/server

.PHONY: test
test: tools format-check tidy-check generate-check contract-lint web-check lint rules e2e race ## run everything that CI runs, and install what that needs

# The last step, so that its closing lines close the log.
.PHONY: race
race:
	go test -race -shuffle=on ./...

.PHONY: lint
lint: $(LINT) ## run go vet and the linters of .golangci.yml
	go vet ./...
	$(LINT) run

.PHONY: fmt
fmt: ## format the Go files
	gofmt -w $(GO_FOLDERS)

# Hidden folders hold caches and are not ours to format.
GO_FOLDERS = $(wildcard *.go) $(wildcard acceptance bench cmd internal)

.PHONY: format-check
format-check:
	@unformatted=$$(gofmt -l $(GO_FOLDERS)); \
	if [ -n "$$unformatted" ]; then \
		printf 'not formatted, run make fmt:\n%s\n' "$$unformatted" >&2; exit 1; \
	fi

.PHONY: tidy-check
tidy-check:
	go mod tidy -diff

# npm writes into the folder while it installs, so its own time says nothing.
node_modules/.installed: package-lock.json
	npm ci --no-progress
	touch $@

.PHONY: generate
generate: node_modules/.installed ## generate what comes from openapi.yaml: the client's types, and the page /docs
	npm run --silent generate
	npm run --silent build -w web

.PHONY: generate-check
generate-check: generate
	git diff --exit-code clients/typescript/src/api.ts internal/web/dist

.PHONY: contract-lint
contract-lint: node_modules/.installed ## have Redocly check openapi.yaml
	npm run --silent lint-contract

.PHONY: web
web: node_modules/.installed ## build the page of web/ into internal/web/dist
	npm run --silent check -w web
	npm run --silent test -w web
	npm run --silent build -w web

# What is committed must be what its sources give.
.PHONY: web-check
web-check: web
	git diff --exit-code internal/web/dist
	test -z "$$(git ls-files --others internal/web/dist)"

.PHONY: rules
rules: tools ## have promtool test the alerts of deploy/prometheus
	promtool check rules --lint=all --lint-fatal deploy/prometheus/loadline.rules.yml
	promtool test rules deploy/prometheus/loadline.rules_test.yml

.PHONY: e2e
e2e: node_modules/.installed ## run the tests of real clients and of a real browser against the real server
	npm run --silent check -w e2e
	npm run --silent test -w e2e

.PHONY: web-test
web-test: web ## the part of e2e that drives the page in a real browser; prints its size and its time
	npm run --silent test -w e2e -- page

.PHONY: screenshots
screenshots: web ## make the pictures in docs/images anew
	npm exec -w e2e -- vitest run --config vitest.shots.config.ts

.PHONY: fuzz
fuzz: ## run each fuzz test for FUZZ_TIME (10s)
	tools/fuzz.sh $(FUZZ_TIME)

# In memory where that can be had: what is tested is not the disk. Of each half 5000.
.PHONY: sequences
sequences: ## run 10,000 random sequences of what can happen to a session; a failure prints its seed
	$(if $(wildcard /dev/shm/.),TMPDIR=/dev/shm) go test ./internal/host -run '^TestSequences$$' -rapid.checks=5000 -rapid.nofailfile -timeout 15m

.PHONY: chaos
chaos: ## kill the server 200 times at random moments; a failure prints its seed
	go test ./acceptance -run '^TestChaos$$' -count=1 -timeout 15m -v -kills 200 2>&1 | grep -v '^ *{'

.PHONY: bench
bench: ## measure against bench/floor and write docs/performance.md
	go run ./bench -out docs/performance.md $(BENCH_FLAGS)

.PHONY: demo-wedge
demo-wedge: ## replay the accident: a small client dies of it, Loadline lives
	go run ./bench/wedge

.PHONY: tools
tools: $(LINT) ## install what the tests and the linters need into bin/
	tools/need.sh

# A module of its own, so that none of the linters' requirements become ours.
$(LINT): tools/go.mod tools/go.sum
	go build -C tools -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: clean
clean: ## remove what was built, not data
	rm -rf bin .cache
