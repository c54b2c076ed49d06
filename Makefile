.PHONY: run test quick bench
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
