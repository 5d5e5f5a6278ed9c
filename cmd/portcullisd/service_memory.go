package main

import (
	"os"
	"runtime/debug"
)

// serviceGC is the growth of memory, in percent, at which the service collects garbage. Requests leave much garbage and
// keep little memory: with Go's 100, strangers would make it hold twice what their requests need.
const serviceGC = 40

// boundGarbage has the service hold less garbage than programs usually do.
func boundGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(serviceGC)
	}
}
