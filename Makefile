.PHONY: run test quick bench screens long
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
# The pictures in docs/screens, from recorded calls; needs chromium and a font
# with emoji (fonts-noto-color-emoji).
screens:
	go test -count=1 -tags screens -run Shoot ./docs/screens
