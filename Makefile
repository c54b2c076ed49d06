.PHONY: run test quick bench soak screens long chaos
run:
	go run ./cmd/gateway
test:
	./test.sh
quick:
	./test.sh quick
# The speeds the product promises, each beside the raw cost of the store.
bench:
	go test -run '^$$' -bench . -benchtime 1s ./store/sqlite ./store/redis ./cmd/gateway
	go test -run '^$$' -bench . -benchtime 200ms ./steer ./loop/... ./adapters/... ./tools
# A million schedules, alone and with replicas.
long:
	go test ./sim -run 'TestSeeds|TestFleet' -seeds 1000000 -timeout 0
# A million turns over 10,000 sessions on each store: an hour or two.
soak:
	go test ./cmd/gateway -count=1 -timeout 12h -run TestSoak -soak 1000000 -soaksessions 10000 -v
# The pictures in docs/screens, from recorded calls; needs chromium and a font
# with emoji (fonts-noto-color-emoji).
screens:
	go test -count=1 -tags screens -run Shoot ./docs/screens
# 1,000 kills of three gateways over one Redis, half of them polling and half
# behind webhooks, and each mutation seen. Prints what was done, the seed and the
# counts; SEED=n draws another run, KILLS=n another length.
SEED ?= 1
KILLS ?= 1000
chaos:
	cd chaos && go test -count=1 -timeout 3h -v -run 'Chaos|Mutations' . -seed $(SEED) -kills $$(($(KILLS) / 2)) -longest 1h
