package syslog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// sendTimeout bounds one attempt to send a message.
	sendTimeout = 10 * time.Second
	// closeTimeout bounds the wait for a receiver to close its end, after which it is believed to have all.
	closeTimeout = 2 * time.Second
)

// Target is a system log: a socket of this machine, or a server over TCP or TLS. There is no UDP, by which no sender learns that a message was
// lost. It opens a connection for each message, and waits for the receiver to close its end: only so a sender learns that a message was read.
type Target struct {
	network string // unix, tcp or tls
	address string
	tls     *tls.Config
}

// Parse reads where a system log is: unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT.
func Parse(where string) (*Target, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, errors.New("want unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT")
	}
	t := &Target{network: u.Scheme, address: u.Host}
	port, portErr := strconv.ParseUint(u.Port(), 10, 16)
	switch u.Scheme {
	case "unix":
		t.address = u.Path
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return nil, errors.New("want unix: with an absolute path, such as unix:/dev/log")
		}
	case "tcp", "tls":
		if u.Hostname() == "" || portErr != nil || port == 0 || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, fmt.Errorf("want %s://HOST:PORT and nothing more", u.Scheme)
		}
	case "udp":
		return nil, errors.New("over UDP it does not show that a message was lost: use tcp:// or tls://")
	default:
		return nil, errors.New("want unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT")
	}
	return t, nil
}

// HostName returns this machine's name in the form of RFC 5424 section 6.2.4; empty where it has none.
func HostName() string {
	name, err := os.Hostname()
	if err != nil || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return name
}

// Encrypted reports whether the connection is TLS.
func (t *Target) Encrypted() bool { return t.network == "tls" }

// SetTLS sets what a TLS connection shows and believes.
func (t *Target) SetTLS(c *tls.Config) { t.tls = c }

// String names the target: its network and address.
func (t *Target) String() string { return t.network + ":" + t.address }

// Send sends a message. It returns nil once the receiver has it.
func (t *Target) Send(ctx context.Context, m *Message) error {
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if t.network == "unix" {
		return t.local(ctx, m)
	}
	return t.remote(ctx, m)
}

// local sends a message as syslog(3) does, to a datagram socket or a stream.
func (t *Target) local(ctx context.Context, m *Message) error {
	msg := m.AppendLocal(nil)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", t.address)
	if err != nil {
		if conn, err = d.DialContext(ctx, "unix", t.address); err != nil {
			return err
		}
		msg = append(msg, '\n')
	}
	defer conn.Close()
	return send(ctx, conn, msg)
}

// remote sends a message with its length before it.
func (t *Target) remote(ctx context.Context, m *Message) error {
	msg := m.AppendTo(nil)
	var conn net.Conn
	var err error
	if t.Encrypted() {
		conn, err = (&tls.Dialer{Config: t.tls}).DialContext(ctx, "tcp", t.address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", t.address)
	}
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := send(ctx, conn, fmt.Appendf(nil, "%d %s", len(msg), msg)); err != nil {
		return err
	}
	return received(conn)
}

func send(ctx context.Context, conn net.Conn, msg []byte) error {
	if late, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(late); err != nil {
			return err
		}
	}
	_, err := conn.Write(msg)
	return err
}

// received ends our side of a connection and waits for the receiver to end its own, which it does when it has read all.
// A receiver that keeps its side open is believed; one that resets the connection is not.
func received(conn net.Conn) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return nil
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(closeTimeout)); err != nil {
		return err
	}
	buf := make([]byte, 512)
	for range 16 {
		_, err := conn.Read(buf)
		switch {
		case err == nil:
			continue
		case isEnd(err):
			return nil
		default:
			return fmt.Errorf("the receiver did not take the message: %w", err)
		}
	}
	return nil
}

// isEnd reports whether an error of a read means that there is nothing more, or that nothing came for long enough.
func isEnd(err error) bool {
	if errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}
