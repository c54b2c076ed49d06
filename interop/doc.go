// Package interop judges the platform fakes by clients that were not written
// for them: grammY speaks to telegramtest and discord.js to discordtest, each
// in a Node process over real loopback sockets. Where a fake and such a client
// disagree, the fake is wrong.
//
// The tests need Node and the packages of package-lock.json, so they stand
// behind a build tag:
//
//	(cd interop && npm ci) && go test -tags interop ./interop
//
// A test tells its client what to do and hears what it saw, one JSON object a
// line; events come in the order the client had them. Each process has one
// goroutine that reads it, which ends with the process.
package interop
