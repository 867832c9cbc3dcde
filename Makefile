# Two commands on a fresh machine: `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
GO ?= go
TOOL := $(GO) tool -modfile=deploy/tools.mod
TESTSUM := $(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg --
FUZZTIME ?= 60s

# What runs processes confined, or containers: one package at a time, so that
# they do not slow each other down.
CONFINED := ./internal/sandbox/... ./internal/exec/host/... ./internal/exec/container/...
OTHERS = $$($(GO) list ./cmd/... ./internal/... ./schemas/... ./deploy/... | grep -vE '/internal/(sandbox|exec/host|exec/container)(/|$$)')

.PHONY: help build demo test setup unit confined integration lint race bench fuzz soak clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## static binaries in bin/
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o bin/ ./cmd/worker ./cmd/publisher

demo: build ## the whole path once, on a temporary directory
	@./bin/worker demo

test: setup lint unit confined integration ## everything, with its own set-up

setup: ## installs and starts what the tests need; may be repeated
	@integration/setup

unit: ## the packages that need nothing but Go and Python
	@$(TESTSUM) $(OTHERS)

confined: ## sandbox, host and container backends, against the real kernel and engine
	@$(TESTSUM) -p 1 -timeout 20m $(CONFINED)

integration: build ## against real servers, engines and clients
	@$(TESTSUM) -timeout 9m ./integration/...

race: ## all of them once more with the race detector
	@$(TESTSUM) -race -timeout 20m $(OTHERS)
	@$(TESTSUM) -race -p 1 -timeout 30m $(CONFINED)

lint: ## vet, static analysis, layers
	@test -z "$$(gofmt -l cmd internal integration schemas deploy)" || { gofmt -l cmd internal integration schemas deploy; echo 'not gofmt-ed: the files above'; exit 1; }
	@$(TOOL) golangci-lint run ./...

bench: build ## side by side with the floor, as ratios of one run
	@$(GO) run ./integration/bench $(BENCH)

fuzz: ## every fuzz target for FUZZTIME (60s) each
	@integration/fuzz $(FUZZTIME)

soak: ## long runs: leaks, hostile code, server restarts
	@TOOLWORKER_SOAK=10000 $(TESTSUM) -timeout 60m -run Soak ./internal/... ./integration/...

clean: ## removes what was built
	@rm -rf bin
