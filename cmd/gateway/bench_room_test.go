//go:build linux

package main

import (
	"fmt"
	"os"
	"testing"
	"time"
)

// BenchmarkRoom is 1,000 chats that write at one instant, with room for 64 tasks
// at once, for as many as by default, and without a cap: the time until the model
// has answered all, and the memory of it.
func BenchmarkRoom(b *testing.B) {
	for _, room := range []int{64, Defaults().Limits.Running, 0} {
		b.Run(fmt.Sprint(room), func(b *testing.B) {
			r := newBenchRig(b, "sqlite")
			f, err := os.OpenFile(r.config, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Fprintf(f, "limits: {running: %d}\n", room)
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
			r.start()
			const many = 1000
			began := time.Now()
			r.say(0, chatIDs(many)...)
			r.await(b, answered, "", many)
			report(b, ms(time.Since(began)), "all-answered-ms")
			report(b, r.usage().peak, "peak-MB")
		})
	}
}
