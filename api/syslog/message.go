package syslog

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Severity is that of RFC 5424 section 6.2.1.
type Severity uint8

// Severities that messages of the service have.
const (
	Critical Severity = 2
	Warning  Severity = 4
	Notice   Severity = 5
	Info     Severity = 6
)

// Facility is that of RFC 5424 section 6.2.1.
type Facility uint8

// Audit is the facility "log audit".
const Audit Facility = 13

// facilities are the names of those that a program may use, by number. The others are of the kernel and of single services.
var facilities = map[string]Facility{
	"user": 1, "daemon": 3, "auth": 4, "authpriv": 10, "audit": Audit,
	"local0": 16, "local1": 17, "local2": 18, "local3": 19, "local4": 20, "local5": 21, "local6": 22, "local7": 23,
}

// ParseFacility returns a facility by its name.
func ParseFacility(name string) (Facility, bool) {
	f, ok := facilities[name]
	return f, ok
}

// FacilityNames lists the names that ParseFacility takes.
const FacilityNames = "user, daemon, auth, authpriv, audit and local0 to local7"

const (
	// MaxMessage bounds a message in bytes. Receivers should take 8192 (RFC 5425 section 4.3.1).
	MaxMessage = 8192
	maxValue   = 1024 // bytes of a value of structured data, before it is escaped
	// nilValue stands for what there is not.
	nilValue = "-"
	bom      = "\ufeff"
	// stampForm has the microseconds that RFC 5424 section 6.2.3 allows at most.
	stampForm = "2006-01-02T15:04:05.999999Z07:00"
)

// Param is a value of structured data and its name.
type Param struct{ Name, Value string }

// Message is what is sent. Its zero fields are the nil value of RFC 5424.
type Message struct {
	Facility Facility
	Severity Severity
	Time     time.Time
	Host     string
	App      string
	Process  string
	ID       string
	Element  string // SD-ID of the structured data; empty: there is none
	Params   []Param
	Text     string
}

// AppendTo appends the message in the form of RFC 5424 to b, at most MaxMessage bytes. A text that is too long is cut.
func (m *Message) AppendTo(b []byte) []byte {
	start := len(b)
	b = append(b, '<')
	b = appendNumber(b, int(m.Facility)*8+int(m.Severity&7))
	b = append(b, ">1 "...)
	if m.Time.IsZero() {
		b = append(b, nilValue...)
	} else {
		b = m.Time.UTC().AppendFormat(b, stampForm)
	}
	for _, part := range []struct {
		text string
		most int
	}{{m.Host, 255}, {m.App, 48}, {m.Process, 128}, {m.ID, 32}} {
		b = append(b, ' ')
		b = appendToken(b, part.text, part.most, nilValue)
	}
	b = append(b, ' ')
	b = m.appendElement(b, start+MaxMessage)
	b = append(b, ' ')
	return appendText(b, m.Text, start+MaxMessage, true)
}

// AppendLocal appends the message in the form that /dev/log takes (RFC 3164), at most MaxMessage bytes. The structured data are before the
// text.
func (m *Message) AppendLocal(b []byte) []byte {
	start := len(b)
	b = append(b, '<')
	b = appendNumber(b, int(m.Facility)*8+int(m.Severity&7))
	b = append(b, '>')
	b = m.Time.AppendFormat(b, time.Stamp)
	b = append(b, ' ')
	b = appendToken(b, m.App, 48, "portcullisd")
	if m.Process != "" {
		b = append(b, '[')
		b = appendToken(b, m.Process, 128, nilValue)
		b = append(b, ']')
	}
	b = append(b, ": "...)
	if m.Element != "" {
		b = m.appendElement(b, start+MaxMessage)
		b = append(b, ' ')
	}
	return appendText(b, m.Text, start+MaxMessage, false)
}

func appendNumber(b []byte, n int) []byte {
	if n >= 10 {
		b = appendNumber(b, n/10)
	}
	return append(b, byte('0'+n%10))
}

// appendToken appends printable ASCII without blanks; what is not that becomes an underscore.
func appendToken(b []byte, s string, most int, none string) []byte {
	if s == "" {
		return append(b, none...)
	}
	for i := range min(len(s), most) {
		c := s[i]
		if c <= ' ' || c > '~' {
			c = '_'
		}
		b = append(b, c)
	}
	return b
}

// appendName appends the name of an element or a value, which has none of = ] and " either (RFC 5424 section 6.3.3).
func appendName(b []byte, s string) []byte {
	at := len(b)
	b = appendToken(b, s, 32, "_")
	for i := at; i < len(b); i++ {
		switch b[i] {
		case '=', ']', '"':
			b[i] = '_'
		}
	}
	return b
}

// appendElement appends the structured data, as many values as end before most with some room for the text.
func (m *Message) appendElement(b []byte, most int) []byte {
	if m.Element == "" {
		return append(b, nilValue...)
	}
	b = append(b, '[')
	b = appendName(b, m.Element)
	for i := range m.Params {
		at := len(b)
		b = append(b, ' ')
		b = appendName(b, m.Params[i].Name)
		b = append(b, '=', '"')
		b = appendValue(b, m.Params[i].Value)
		b = append(b, '"')
		if len(b)+len("] ") > most-maxValue {
			b = b[:at]
			break
		}
	}
	return append(b, ']')
}

// appendValue appends a value with " \ and ] escaped, in one line.
func appendValue(b []byte, s string) []byte {
	end := 0
	for _, r := range s {
		r = printable(r)
		if end += utf8.RuneLen(r); end > maxValue {
			break
		}
		if r == '"' || r == '\\' || r == ']' {
			b = append(b, '\\')
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}

// printable returns a character that a line may have: control characters, line and paragraph separators, characters of no width, which reorder
// text or hide in it, and bytes that are no UTF-8 become others.
func printable(r rune) rune {
	switch {
	case r == utf8.RuneError:
		return '?'
	case !unicode.IsPrint(r):
		return ' '
	default:
		return r
	}
}

// appendText appends a text in one line, at most to the length most. With mark, a text that is not ASCII begins with the mark of UTF-8, as
// RFC 5424 section 6.4 wants it.
func appendText(b []byte, s string, most int, mark bool) []byte {
	if mark && strings.ContainsFunc(s, func(r rune) bool { return printable(r) >= utf8.RuneSelf }) {
		b = append(b, bom...)
	}
	for _, r := range s {
		r = printable(r)
		if len(b)+utf8.RuneLen(r) > most {
			break
		}
		b = utf8.AppendRune(b, r)
	}
	return b
}
