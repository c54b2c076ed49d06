// Package chaos runs several built gateways over one Redis and takes from them
// what they stand on: themselves (SIGKILL at a named failpoint or at any moment,
// SIGSTOP for longer than the lease), the server (SIGKILL), and the network
// (resets, latency, a narrow line, replies that do not arrive). People write all
// the while. At the end it counts, from the store and from logs outside of the
// gateways, what must be zero (I1-I9).
//
// It is a module of its own: toxiproxy stands between a gateway and Redis, and
// what that needs has no place in the product's go.mod.
//
// One goroutine, the test's, draws the faults and owns the processes; each person
// is a goroutine that writes and ends with the run. Times are real.
package chaos
