// Package screens draws how a steered task looks on Telegram and on Discord.
//
// A short story is played on the real hub, loop, outbox and adapter against the
// platform's fake, with a scripted model and scripted tools. What the calls of
// the adapter made of the chat is drawn as one HTML page, without a network,
// foreign fonts or anybody's logo: once in the middle of the task and once at
// its end. Nothing on the page but its frame is written by hand.
//
//	make screens
//
// photographs the pages into this directory with a headless browser. It stands
// behind the build tag screens; the other tests need no browser.
//
// Everything here is test code. Telegram's story runs in a testing/synctest
// bubble, Discord's over loopback sockets; each waits for what it has begun.
package screens
