package anchor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"os"
	"strconv"
	"time"

	"portcullis/api/audit/chain"
	"portcullis/api/syslog"
)

// sinkTimeout bounds one attempt to write an anchor to a web server, or to read some.
const sinkTimeout = 10 * time.Second

// Syslog is a Sink that sends anchors to a system log.
type Syslog struct{ to *syslog.Target }

// ParseSyslog reads where a system log is: unix:/dev/log, tcp://HOST:PORT or tls://HOST:PORT.
func ParseSyslog(where string) (*Syslog, error) {
	to, err := syslog.Parse(where)
	if err != nil {
		return nil, err
	}
	return &Syslog{to}, nil
}

// Encrypted reports whether the connection is TLS.
func (s *Syslog) Encrypted() bool { return s.to.Encrypted() }

// SetTLS sets what a TLS connection shows and believes.
func (s *Syslog) SetTLS(c *tls.Config) { s.to.SetTLS(c) }

// Kind implements Sink.
func (*Syslog) Kind() string { return "syslog" }

// Name implements Sink.
func (s *Syslog) Name() string { return "syslog:" + s.to.String() }

// Write implements Sink.
func (s *Syslog) Write(ctx context.Context, a *chain.Anchor) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return s.to.Send(ctx, &syslog.Message{
		Facility: syslog.Audit, Severity: syslog.Notice, Time: time.Now(), Host: syslog.HostName(), App: "portcullisd",
		Process: strconv.Itoa(os.Getpid()), ID: "anchor", Text: chain.Marker + string(text),
	})
}
