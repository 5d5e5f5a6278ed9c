package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"

	"portcullis/api/fabric/query"
	"portcullis/fabricsm/driver"
	"portcullis/fabricsm/sm"
)

// journalHandler writes log records to the journal with fields: MESSAGE, PRIORITY, one field for each attribute, and for an
// event MESSAGE_ID and PORTCULLIS_EVENT. An event of the subnet manager also has fields for what it is about.
type journalHandler struct {
	level  slog.Leveler
	send   func(message string, priority journal.Priority, fields map[string]string) error
	other  slog.Handler // for what the journal does not take
	attrs  []slog.Attr
	groups string // "A_B_", before the names of attributes
}

// Enabled implements slog.Handler.
func (h *journalHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// WithAttrs implements slog.Handler.
func (h *journalHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	next := *h
	next.other = h.other.WithAttrs(attrs)
	next.attrs = append(append([]slog.Attr{}, h.attrs...), grouped(h.groups, attrs)...)
	return &next
}

// WithGroup implements slog.Handler.
func (h *journalHandler) WithGroup(name string) slog.Handler {
	next := *h
	next.other = h.other.WithGroup(name)
	next.groups = h.groups + name + "_"
	return &next
}

func grouped(prefix string, attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = slog.Attr{Key: prefix + a.Key, Value: a.Value}
	}
	return out
}

// Handle implements slog.Handler.
func (h *journalHandler) Handle(ctx context.Context, r slog.Record) error {
	fields := map[string]string{"SYSLOG_IDENTIFIER": "portcullisd"}
	message := strings.Builder{}
	message.WriteString(r.Message)
	whole := false // the text says all
	add := func(a slog.Attr) {
		if e, ok := a.Value.Any().(sm.Event); ok && a.Key == driver.EventKey {
			eventFields(fields, e)
			return
		}
		text := a.Value.Resolve().String()
		fields[fieldOf(a.Key)] = text
		if a.Key == driver.EventKey {
			fields["MESSAGE_ID"], whole = messageID(text), true
		}
		message.WriteString(" " + a.Key + "=" + text)
	}
	for _, a := range h.attrs {
		add(a)
	}
	r.Attrs(func(a slog.Attr) bool {
		add(grouped(h.groups, []slog.Attr{a})[0])
		return true
	})
	text := message.String()
	if whole {
		text = r.Message
	}
	if h.send(text, priorityOf(r.Level), fields) != nil {
		return h.other.Handle(ctx, r)
	}
	return nil
}

// eventFields adds what an event is about.
func eventFields(fields map[string]string, e sm.Event) {
	name := query.EventName(e)
	fields["MESSAGE_ID"], fields[fieldOf("event")] = messageID(name), name
	for key, value := range query.EventFields(e) {
		fields[fieldOf(key)] = value
	}
}

// messageID returns the message id of an event (journald, MESSAGE_ID): 128 bits that are always the same for the same
// event.
func messageID(event string) string {
	sum := sha256.Sum256([]byte("portcullis:" + event))
	return hex.EncodeToString(sum[:16])
}

// fieldOf returns the journal field of an attribute: upper case letters, digits and underscores.
func fieldOf(key string) string {
	return "PORTCULLIS_" + strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r - 'a' + 'A'
		case 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
			return r
		default:
			return '_'
		}
	}, key)
}

func priorityOf(l slog.Level) journal.Priority {
	switch {
	case l >= slog.LevelError:
		return journal.PriErr
	case l >= slog.LevelWarn:
		return journal.PriWarning
	case l >= slog.LevelInfo:
		return journal.PriInfo
	default:
		return journal.PriDebug
	}
}
