package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"portcullis/api/store"
)

// stopTime bounds how long a member may take to end in order, after which it is killed. It
// loses nothing by that.
const stopTime = 10 * time.Second

// child is a member in a process of its own.
type child struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	stdin   io.Closer
	ready   chan struct{} // closed when it serves
	gone    chan struct{} // closed when the process has ended

	mu    sync.Mutex
	cause error // why it is dead; set before gone is closed
}

// startChild starts the member's process and waits until it serves.
func startChild(ctx context.Context, o Options) (*backend, error) {
	c, err := launch(o)
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ready:
	case <-c.gone:
		return nil, c.err()
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("start the store in %s: %w", o.Dir, context.Cause(ctx)), c.stop())
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"store"}, Context: context.WithoutCancel(ctx), Logger: quietLogger(o.Log, func(error) {}),
		MaxCallSendMsgSize: maxRequestBytes + 1<<20, MaxCallRecvMsgSize: math.MaxInt32,
		DialOptions: []grpc.DialOption{
			grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dialOver(c.control) }),
			grpc.WithIdleTimeout(0),
		},
	})
	if err != nil {
		return nil, errors.Join(explain(err), c.stop())
	}
	return &backend{client: client, member: c}, nil
}

// launch starts the process.
func launch(o Options) (*child, error) {
	options, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("start the store: %w", err)
	}
	control, theirs, err := pair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", // this very build, also after the file was replaced by an upgrade
		Args: o.Command, Env: environment(), Stderr: os.Stderr, ExtraFiles: []*os.File{theirs},
		SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL},
	}
	c := &child{cmd: cmd, control: control, ready: make(chan struct{}), gone: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	c.stdin = in
	started := make(chan error, 1)
	go c.live(started, out)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start the store: %w", err), control.Close())
	}
	if _, err := in.Write(append(options, '\n')); err != nil {
		return nil, errors.Join(fmt.Errorf("start the store: %w", err), c.stop())
	}
	return c, nil
}

// environment is that of this process without what systemd meant for it alone.
func environment() []string {
	var out []string
	for _, e := range os.Environ() {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES":
		default:
			out = append(out, e)
		}
	}
	return out
}

// live starts the process and waits for its end. The kernel kills the process with the
// thread that started it, so the thread is kept until then.
func (c *child) live(started chan<- error, out io.Reader) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := c.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	said := c.listen(out)
	err = c.cmd.Wait()
	switch {
	case said != nil:
		err = said
	case err != nil:
		err = fmt.Errorf("the store's process ended: %w", err)
	default:
		err = store.ErrClosed
	}
	c.mu.Lock()
	c.cause = err
	c.mu.Unlock()
	close(c.gone)
}

// listen reads the words of the process until it ends, and returns the reason that it named.
func (c *child) listen(out io.Reader) (said error) {
	words := json.NewDecoder(out)
	for {
		var w word
		if err := words.Decode(&w); err != nil {
			return said
		}
		switch {
		case w.Died != "" && w.Full:
			said = fullError{w.Died}
		case w.Died != "":
			said = errors.New(w.Died)
		case w.Ready:
			select {
			case <-c.ready:
			default:
				close(c.ready)
			}
		}
	}
}

// fullError is a store.ErrFull of another process.
type fullError struct{ text string }

func (e fullError) Error() string        { return e.text }
func (e fullError) Is(target error) bool { return target == store.ErrFull }

func (c *child) dead() <-chan struct{} { return c.gone }

func (c *child) err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// stop asks the process to end, and kills it if it does not.
func (c *child) stop() error {
	err := c.stdin.Close()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	select {
	case <-c.gone:
	case <-time.After(stopTime):
		err = errors.Join(err, c.kill())
		<-c.gone
	}
	return errors.Join(err, c.abandon())
}

func (c *child) kill() error {
	err := c.cmd.Process.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (c *child) abandon() error {
	err := c.control.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
