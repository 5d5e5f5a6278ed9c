//go:build vm

package vm

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"

	"portcullis/packaging/vm/turns"
)

// queue is where labs wait until they may run.
var queue *turns.Queue

// TestMain has as many labs run at once as -parallel says. All of them have to be there before the first begins, so Go's testing
// holds none back.
func TestMain(m *testing.M) {
	flag.Parse()
	atOnce := runtime.NumCPU() // with more of them programs in the machines do not end in time
	flag.Visit(func(f *flag.Flag) {
		if n, err := strconv.Atoi(f.Value.String()); err == nil && f.Name == "test.parallel" {
			atOnce = n
		}
	})
	queue = turns.New(atOnce)
	if err := flag.Set("test.parallel", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// lab has a lab run beside others. Its length is about what it takes, in seconds of processors: the longest begin first.
func lab(t *testing.T, length int) {
	t.Helper()
	queue.Announce()
	t.Parallel()
	t.Cleanup(queue.Wait(length))
}
