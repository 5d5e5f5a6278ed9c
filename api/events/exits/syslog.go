package exits

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"portcullis/api/events"
	"portcullis/api/syslog"
	v1 "portcullis/api/v1"
)

// ExampleEnterprise is the private enterprise number that RFC 5612 has for examples.
const ExampleEnterprise = 32473

// Syslog sends events to a system log.
type Syslog struct {
	To         *syslog.Target
	Facility   syslog.Facility
	Enterprise uint32 // private enterprise number after the name of the structured data
}

// Send sends an event. It returns nil once the receiver has it.
func (s *Syslog) Send(ctx context.Context, _ string, _ time.Time, body []byte) error {
	var e v1.CloudEvent
	if err := json.Unmarshal(body, &e); err != nil {
		return fmt.Errorf("the event is not readable: %w", err)
	}
	m := message(&e)
	m.Facility, m.Host, m.App, m.Process = s.Facility, syslog.HostName(), "portcullisd", strconv.Itoa(os.Getpid())
	m.Element = "portcullis@" + strconv.FormatUint(uint64(s.Enterprise), 10)
	return s.To.Send(ctx, m)
}

// message returns what of a message the event says. The values have the names of the fields of the journal.
func message(e *v1.CloudEvent) *syslog.Message {
	d := &e.Data
	m := &syslog.Message{
		Severity: severityOf(d.Severity), Time: d.Last.Local(), ID: d.Type, Text: events.Text(d),
		Params: []syslog.Param{
			{Name: "id", Value: d.ID},
			{Name: "event", Value: d.Type},
			{Name: "severity", Value: d.Severity},
			{Name: "cause", Value: d.Cause},
			{Name: "by", Value: d.By},
			{Name: "count", Value: strconv.FormatUint(d.Count, 10)},
			{Name: "about", Value: e.Subject},
		},
	}
	if d.Host != "" {
		m.Params = append(m.Params, syslog.Param{Name: "host", Value: d.Host})
	}
	if d.Adapter != 0 {
		m.Params = append(m.Params, syslog.Param{Name: "guid", Value: d.Adapter.String()})
	}
	return m
}

func severityOf(text string) syslog.Severity {
	switch text {
	case events.Critical:
		return syslog.Critical
	case events.Warning:
		return syslog.Warning
	case events.Notice:
		return syslog.Notice
	default:
		return syslog.Info
	}
}
