# Portcullis: "make help" says what can be made.

export CGO_ENABLED ?= 0
# Tests, tools and programs are compiled with the same flags, so that each package is compiled once for all of them.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)

PROGRAMS = portcullisd portcullis-agent portcullis portcullis-sim
VERSION := $(shell packaging/version.sh)
LDFLAGS = -s -w -X portcullis/cmd/internal/version.tag=$(VERSION)
BUILD = go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
TOOL = go tool -modfile=packaging/tools.mod
# A run in which no test ran is a failure. "make vet", a part of "make check", checks all that go test would, and more:
# after a change of a package, go test would check every package that uses it once more, and again for -race. Without the
# symbol table and debug information a test is linked in less time; a failure or a panic has its file and line without them.
TESTS = packaging/inmemory.sh $(TOOL) gotestsum --format pkgname --format-icons text --format-hide-empty-pkg --post-run-command 'packaging/ran.sh' -- -vet=off -ldflags='-s -w'
FUZZTIME ?= 10s
ATTACKTIME ?= 1m
SEEDS ?= 10000
CABLINGS ?= 150
PULLS ?= 12
LIVES ?= 40
LABS ?= .
FAULTS ?= 200
HOSTS ?= 324
FABRIC ?= portcullis-sim
# Packages whose tests take longest begin first, and more run at once than there are
# CPUs: most of them wait for other programs. Those of ./fabricsm/sm wait for none, and most run one after the other.
SLOW = ./cmd/portcullisd ./fabricsm/sm ./cmd/portcullis-demo ./fabricsm/sa/satest ./api/store/etcd ./cmd/portcullis-bench
SIDE_BY_SIDE = -p 4 -parallel 6

.PHONY: all build check test seeds floods model attack demo chaos boot image vm fuzz attack-fabric bench bench-sm bench-events bench-route bench-sim bench-sa bench-failover bench-proof bench-control package setup clean help \
	format words house vet lint tidy race update

all: build ## Build the four programs into bin/ (the default)

build:
	$(BUILD) -o bin/ $(PROGRAMS:%=./cmd/%)

check: format words house tidy vet lint build race ## Everything that must hold before a merge, but for "make test"

test: package ## Install what the tests need, then run all of them against the real parts
	packaging/setup.sh fabric store tpm firmware selinux peers package image model web
	PORTCULLIS_REAL_PARTS=required $(TESTS) -timeout 20m $(SIDE_BY_SIDE) $(SLOW) ./...

seeds: ## Run SEEDS (10000) random schedules of faults against the core, CABLINGS (150) against a declared topology, PULLS (12) of the own cable, LIVES (40) of keys
	$(TESTS) -timeout 30m ./fabricsm/sm -run '^Test(Random(Schedules|Cabling)|OwnCable)$$' -sm.seeds=$(SEEDS) -sm.cablings=$(CABLINGS) -sm.pulls=$(PULLS)
	$(TESTS) -timeout 20m ./fabricsm/sm/keymgr -run '^TestRandomLives$$' -keymgr.lives=$(LIVES)

floods: ## Have two hosts send SMPs, traps and GMPs to the Subnet Manager as fast as the socket takes them
	$(TESTS) -tags flood -count 1 -timeout 5m ./fabricsm/driver -run '^TestFloods'

model: ## Check the model of admission, leadership and keys with spin, in every state within its bounds
	packaging/model/check.sh

attack: ## Have public scanners, load generators and made-up requests attack a running service for ATTACKTIME (1m)
	packaging/setup.sh attack
	PORTCULLIS_REAL_PARTS=required $(TESTS) -tags attack -count 1 -timeout 30m ./cmd/portcullisd -run '^TestAttack' -attack.time $(ATTACKTIME)

demo: ## Install software TPMs and tell the whole story on a simulated fabric; FABRIC=ibsim: on ibsim's; STAY=1: it keeps running
	packaging/setup.sh demo $(if $(filter ibsim,$(FABRIC)),fabric)
	$(BUILD) -o bin/ $(PROGRAMS:%=./cmd/%) ./cmd/portcullis-demo
	bin/portcullis-demo --fabric $(FABRIC) $(if $(STAY),--stay)

chaos: ## Inject FAULTS (200) of SEED (drawn) into three instances and a fabric of HOSTS (324), with traffic; needs root
	packaging/setup.sh fabric chaos
	$(BUILD) -o bin/ $(PROGRAMS:%=./cmd/%) ./cmd/portcullis-chaos
	bin/portcullis-chaos --faults $(FAULTS) --hosts $(HOSTS) $(if $(SEED),--seed $(SEED)) $(CHAOS)

format: ## Say which files gofumpt would write differently
	@packaging/format.sh

words: ## Check that comments, messages and documents use the words that packaging/words/list.txt wants
	go run ./packaging/words

house: ## Print the largest types and packages, and check that none grew
	go run ./packaging/house

tidy: ## Check go.mod and go.sum
	go mod tidy -diff
	go mod verify

vet:
	go vet ./...
	go vet -tags boot ./packaging/boot
	go vet -tags flood ./fabricsm/driver
	go vet -tags attack ./cmd/portcullisd
	go vet -tags vm ./packaging/vm/...

lint: ## Run the linters of .golangci.yml
	$(TOOL) golangci-lint run ./...

race: ## Run the tests of everything that has goroutines under the race detector
	packaging/setup.sh race
	CGO_ENABLED=1 $(TESTS) -race -short -timeout 20m ./cmd/portcullisd ./api ./api/store/etcd $$(packaging/raced.sh)

boot: package ## Boot a system in a container and try our packages and units in it; needs root
	packaging/setup.sh tpm package boot
	packaging/bootable.sh
	PORTCULLIS_REAL_PARTS=required $(TESTS) -tags boot -count 1 -timeout 10m ./packaging/boot

image: package ## Build the provisioning image of the site folder CONFIG into dist/image; SIGN_KEY, SIGN_CERT, LOCK
	packaging/setup.sh image
	go run ./packaging/image -site '$(or $(CONFIG),$(error say CONFIG=folder: docs/operate/image.md tells what is in it))' -agent dist/portcullis-agent_*_amd64.deb \
		-version '$(VERSION)' $(if $(KERNEL),-kernel '$(KERNEL)') $(if $(LOCK),-lock '$(LOCK)') $(if $(SIGN_KEY),-sign-key '$(SIGN_KEY)' -sign-cert '$(SIGN_CERT)')

vm: package ## Boot virtual machines and try everything on a real kernel, TPM, firmware and systemd; needs root, not KVM
	packaging/setup.sh tpm fabric package vm
	PORTCULLIS_REAL_PARTS=required go test -tags vm -count 1 -v -timeout 40m -run '$(LABS)' ./packaging/vm
	go test -tags vm ./packaging/vm/machine ./packaging/vm/disk ./packaging/vm/turns

fuzz: ## Fuzz every target for FUZZTIME (10s)
	packaging/fuzz.sh $(FUZZTIME)

attack-fabric: FUZZTIME := $(if $(filter environment command,$(firstword $(origin FUZZTIME))),$(FUZZTIME),60s)
attack-fabric: ## Have one tenant's host send MADs to the manager and to subnet administration, guided by coverage, for FUZZTIME (60s) each
	go test ./fabricsm/drill/threats -run '^$$' -fuzz '^FuzzManager$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 2s
	go test ./fabricsm/drill/threats -run '^$$' -fuzz '^FuzzAdministration$$' -fuzztime $(FUZZTIME) -fuzzminimizetime 2s

bench: ## Run every benchmark once
	go test -run '^$$' -bench . -benchmem ./...

bench-sm: build ## Measure bring-up beside OpenSM, BENCH="--sizes 648 --runs 3"; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench bringup $(BENCH)

bench-events: build ## Measure single changes of a fabric beside OpenSM; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench events $(BENCH)

bench-route: build ## Measure routing engines, their verdict and balance beside OpenSM; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench route $(BENCH)

bench-sim: build ## Measure the simulator beside ibsim, over the socket; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench sim $(BENCH)

bench-sa: build ## Measure subnet administration beside OpenSM's, over the socket; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench sa $(BENCH)

bench-failover: build ## Measure how a Subnet Manager is replaced, and restarted, beside OpenSM; writes docs/benchmarks
	packaging/setup.sh fabric peers
	go run ./cmd/portcullis-bench failover $(BENCH)

bench-proof: build ## Measure what it costs to read a fabric and to prove that tenants are isolated; writes docs/benchmarks
	go run ./cmd/portcullis-bench proof $(BENCH)

bench-control: build ## Measure assignments, a storm of evidence, reads, and hosts that change their cluster all the time; writes docs/benchmarks
	go run ./cmd/portcullis-bench control $(BENCH)

package: build ## Build deb and rpm packages into dist/
	packaging/package.sh $(VERSION)

update: ## Rewrite portcullisd.yaml(5), the alert rules with their page and dashboards, and the committed lists of linked packages and of the state
	go run ./packaging/confpage
	go test ./packaging/alerts -run Files -update
	go test ./packaging -run 'TestLinked|TestStateFormat' -update

setup: ## Install every system package that any target needs
	packaging/setup.sh all

clean: ## Remove what was built
	rm -rf bin dist

help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s  %s\n", $$1, $$2 }' Makefile
