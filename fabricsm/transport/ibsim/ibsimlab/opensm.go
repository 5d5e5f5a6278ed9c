package ibsimlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// exiting is what OpenSM logs when its work is done.
	exiting = "Exiting SM"
	// exitGrace is how long OpenSM may take to end after that.
	exitGrace = 5 * time.Second
	// lookEvery is how often its log is read.
	lookEvery = 20 * time.Millisecond
)

// harmless are errors that OpenSM logs for a notice of a device whose LID it does not know yet.
var harmless = []string{"osm_get_port_by_mad_addr: ERR 7504:", "trap_rcv_process_request: ERR 3809:"}

// CameUp reports whether the log of OpenSM says that the subnet is up, without an error before OpenSM began to exit.
// OpenSM logs an error for each request that is out when it exits.
func CameUp(log []byte) bool {
	before, _, _ := bytes.Cut(log, []byte(exiting))
	up := false
	for line := range bytes.Lines(before) {
		up = up || bytes.Contains(line, []byte("SUBNET UP"))
		if bytes.Contains(line, []byte("ERR ")) && !slices.ContainsFunc(harmless, func(s string) bool { return bytes.Contains(line, []byte(s)) }) {
			return false
		}
	}
	return up
}

// OpenSM has OpenSM bring the fabric up once, at port 1 of the named node, and returns its log. dir takes the log, as
// opensm.log, and the files that OpenSM keeps. args are further options.
//
// How OpenSM ends is not judged: at times it crashes or waits without end after its log says that it exits.
func (c Client) OpenSM(ctx context.Context, node, dir string, args ...string) (log []byte, err error) {
	file := filepath.Join(dir, "opensm.log")
	cmd, err := c.Command(ctx, node, "opensm", append([]string{"-o", "-e", "-s", "0", "-f", file}, args...)...)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(cmd.Env, "OSM_CACHE_DIR="+dir, "OSM_TMP_DIR="+dir)
	ended := untilExit(cmd, file)
	log, err = os.ReadFile(file)
	if err != nil || !CameUp(log) {
		return log, fmt.Errorf("OpenSM did not bring the fabric up: %w\n%s\n%s", errors.Join(ended, err), out.Bytes(), log)
	}
	return log, nil
}

// untilExit runs OpenSM until it ends, or for exitGrace after its log says that it exits.
func untilExit(cmd *exec.Cmd, log string) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var late <-chan time.Time
	for {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			if text, err := os.ReadFile(log); late == nil && err == nil && bytes.Contains(text, []byte(exiting)) {
				late = time.After(exitGrace)
			}
		case <-late:
			_ = cmd.Process.Kill() // it may have ended meanwhile
			return <-ended
		}
	}
}
