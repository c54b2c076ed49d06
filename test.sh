#!/usr/bin/env bash
# Everything that must hold before a change lands. Installs what it needs when
# it may (Debian, as root); else it says what to install and stops. Nothing is
# skipped. On two cores it takes about ten minutes.
#
#   ./test.sh          everything
#   ./test.sh quick    without the race detector's and the long runs
set -euo pipefail
cd "$(dirname "$0")"
quick=${1:-}

need() { # command, package
	command -v "$1" >/dev/null && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		[ -n "${apt_updated:-}" ] || { DEBIAN_FRONTEND=noninteractive apt-get update -qq; apt_updated=1; }
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
		command -v "$1" >/dev/null && return
	fi
	echo "test.sh: $1 is missing: install the package $2 and run this again" >&2
	exit 1
}
need go golang
need gcc gcc # the race detector
need redis-server redis-server
need chromium chromium
need node nodejs
need npm npm

step() { printf '\n== %s\n' "$*"; }

step "gofmt"
bad=$(gofmt -l $(git ls-files '*.go'))
[ -z "$bad" ] || { echo "run gofmt -w on: $bad" >&2; exit 1; }
step "go vet"
go vet ./...
go vet -tags failpoints ./cmd/gateway
go vet -tags interop ./interop
go vet -tags screens ./docs/screens
(cd chaos && go vet ./...)
step "staticcheck"
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags interop ./interop
go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -tags screens ./docs/screens
(cd chaos && go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...)
step "go mod tidy"
go mod tidy -diff
(cd chaos && go mod tidy -diff)

if [ "$quick" = quick ]; then
	step "tests"
	go test ./...
	exit
fi
step "tests, with the race detector"
go test -race -timeout 15m ./...
step "the fakes, judged by grammY and discord.js"
(cd interop && npm ci --no-audit --no-fund)
go test -count=1 -tags interop -timeout 5m ./interop
step "10,000 simulated schedules"
go test ./sim -run 'TestSeeds' -seeds 10000 -timeout 15m
step "10,000 simulated schedules with replicas"
go test ./sim -run 'TestFleet' -seeds 10000 -timeout 15m
step "200 kills of the built gateway on each store"
go test ./cmd/gateway -run 'TestKills' -kills 200 -timeout 20m
step "three gateways over one Redis, and every kind of fault (make chaos runs 1,000 kills)"
(cd chaos && go test -count=1 -timeout 5m -v -run Chaos .)
step "30,000 turns on each store: memory, goroutines, open files"
go test -count=1 ./cmd/gateway -run 'TestSoak' -soak 30000 -timeout 10m
step "known vulnerabilities"
if out=$(go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./... 2>&1); then
	echo "none reachable"
elif echo "$out" | grep -q "Vulnerability #"; then
	echo "$out" >&2
	exit 1
else
	echo "the vulnerability database cannot be reached from here: not checked"
fi
