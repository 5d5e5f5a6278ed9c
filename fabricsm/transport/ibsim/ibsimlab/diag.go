package ibsimlab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// diagTimeout bounds one diagnostic run: the preload library never times a
// request out by itself.
const diagTimeout = 30 * time.Second

// Client names a simulator to run libibumad programs against. It need not be
// ibsim: anything that speaks its socket protocol will do.
type Client struct {
	Socket string // base of the socket names
	Dir    string // scratch directory: the preload library writes ./sys-PID there
}

// Command prepares a libibumad program (an infiniband-diags tool or opensm)
// that sits at port 1 of the named node. The caller may change it before
// starting it.
func (c Client) Command(ctx context.Context, node, tool string, args ...string) (*exec.Cmd, error) {
	program, err := Find(tool)
	if err != nil {
		return nil, err
	}
	preload, err := Preload()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(),
		"LD_PRELOAD="+preload, "SIM_HOST="+node, "IBSIM_SOCKNAME="+c.Socket,
		"OSM_TMP_DIR="+c.Dir, "OSM_CACHE_DIR="+c.Dir)
	cmd.WaitDelay = time.Second
	return cmd, nil
}

// Diag runs an infiniband-diags tool to its end and returns its standard
// output. The error of a tool that ended with a status has its standard error
// in it.
func (c Client) Diag(ctx context.Context, node, tool string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, diagTimeout)
	defer cancel()
	cmd, err := c.Command(ctx, node, tool, args...)
	if err != nil {
		return nil, err
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return out.Bytes(), fmt.Errorf("%s %s at %q: %w: %s",
			tool, strings.Join(args, " "), node, err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}

// Client is how libibumad programs reach this lab.
func (l *Lab) Client() Client { return Client{Socket: l.socket, Dir: l.dir} }

// Diag runs an infiniband-diags tool at the named node of this lab.
func (l *Lab) Diag(ctx context.Context, node, tool string, args ...string) ([]byte, error) {
	return l.Client().Diag(ctx, node, tool, args...)
}
