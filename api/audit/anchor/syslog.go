package anchor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"portcullis/api/audit/chain"
)

const (
	// priority is facility "log audit" (13) with severity notice (5), RFC 5424 section 6.2.1.
	priority = 13*8 + 5
	// sinkTimeout bounds one attempt to write an anchor, or to read some.
	sinkTimeout = 10 * time.Second
	// closeTimeout bounds the wait for a receiver to close its end, after which it is believed to have all.
	closeTimeout = 2 * time.Second
)

// Syslog is a Sink that sends anchors to a system log: on a socket of this machine, in the form that /dev/log takes, or
// over TCP or TLS in that of RFC 5424, framed as RFC 5425 and RFC 6587 section 3.4.1 have it. There is no UDP, by which
// no sender learns that a message was lost. It opens a connection for each anchor, so that a dead one is noticed.
type Syslog struct {
	network string // unix, tcp or tls
	address string
	tls     *tls.Config
	host    string // as RFC 5424 has it
	now     func() time.Time
}

// ParseSyslog reads where a system log is: unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT.
func ParseSyslog(where string) (*Syslog, error) {
	u, err := url.Parse(where)
	if err != nil {
		return nil, errors.New("want unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT")
	}
	s := &Syslog{network: u.Scheme, address: u.Host, now: time.Now, host: hostName()}
	port, portErr := strconv.ParseUint(u.Port(), 10, 16)
	switch u.Scheme {
	case "unix":
		s.address = u.Path
		if u.Host != "" || u.RawQuery != "" || !filepath.IsAbs(u.Path) {
			return nil, errors.New("want unix: with an absolute path, such as unix:/dev/log")
		}
	case "tcp", "tls":
		if u.Hostname() == "" || portErr != nil || port == 0 || u.User != nil || u.Path != "" || u.RawQuery != "" {
			return nil, fmt.Errorf("want %s://HOST:PORT and nothing more", u.Scheme)
		}
	case "udp":
		return nil, errors.New("over UDP it does not show that an anchor was lost: use tcp:// or tls://")
	default:
		return nil, errors.New("want unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT")
	}
	return s, nil
}

// hostName returns this machine's name in the form of RFC 5424 section 6.2.4.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" || len(name) > 255 || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "-"
	}
	return name
}

// Encrypted reports whether the connection is TLS.
func (s *Syslog) Encrypted() bool { return s.network == "tls" }

// SetTLS sets what a TLS connection shows and believes.
func (s *Syslog) SetTLS(c *tls.Config) { s.tls = c }

// Kind implements Sink.
func (*Syslog) Kind() string { return "syslog" }

// Name implements Sink.
func (s *Syslog) Name() string { return "syslog:" + s.network + ":" + s.address }

// Write implements Sink.
func (s *Syslog) Write(ctx context.Context, a *chain.Anchor) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sinkTimeout)
	defer cancel()
	if s.network == "unix" {
		return s.local(ctx, text)
	}
	return s.remote(ctx, text)
}

// local sends a message as syslog(3) does, to a datagram socket or a stream.
func (s *Syslog) local(ctx context.Context, text []byte) error {
	msg := fmt.Appendf(nil, "<%d>%s portcullisd[%d]: %s%s", priority, s.now().Format(time.Stamp), os.Getpid(), chain.Marker, text)
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unixgram", s.address)
	if err != nil {
		if conn, err = d.DialContext(ctx, "unix", s.address); err != nil {
			return err
		}
		msg = append(msg, '\n')
	}
	defer conn.Close()
	return send(ctx, conn, msg)
}

// remote sends a message of RFC 5424 with its length before it.
func (s *Syslog) remote(ctx context.Context, text []byte) error {
	msg := fmt.Sprintf("<%d>1 %s %s portcullisd %d anchor - %s%s", priority, s.now().UTC().Format(time.RFC3339Nano), s.host, os.Getpid(), chain.Marker, text)
	var conn net.Conn
	var err error
	if s.Encrypted() {
		conn, err = (&tls.Dialer{Config: s.tls}).DialContext(ctx, "tcp", s.address)
	} else {
		conn, err = new(net.Dialer).DialContext(ctx, "tcp", s.address)
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
