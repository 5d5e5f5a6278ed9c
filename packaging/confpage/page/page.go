package page

import (
	"regexp"
	"strings"
)

// head is what stands before the keys.
const head = `.\" Written by packaging/confpage out of the reference configuration. Change that, and run it again.
.Dd November 28, 2026
.Dt PORTCULLISD.YAML 5
.Os
.Sh NAME
.Nm portcullisd.yaml
.Nd configuration of portcullisd
.Sh DESCRIPTION
The configuration of
.Xr portcullisd 8
is one YAML file.
Unknown keys are refused, and every problem is reported at once with its line.
A key that is left out has its default.
File names are relative to this file.
Durations are written as 200ms, 90s, 15m or 1h.
.Pp
.Ql portcullisd --print-config
prints a file with every key and its default, and
.Ql portcullisd --check
checks one.
Certificate, key and tokens are read again on
.Ql systemctl reload portcullisd ;
with the role sm port policies, quality of service, rules of health, allowed Subnet Managers,
the declared topology, routing and most of subnet administration are, too.
Everything else takes a restart.
`

// foot is what follows the keys.
const foot = `.Sh FILES
.Bl -tag -width Ds
.It Pa /etc/portcullis/portcullisd.yaml
.It Pa /usr/share/doc/portcullisd/portcullisd.yaml
The reference configuration.
.El
.Sh SEE ALSO
.Xr portcullis 1 ,
.Xr portcullisd 8
`

// writer writes a page in the language mdoc.
type writer struct {
	strings.Builder
	listed  bool            // a list of keys is open
	heading string          // the section under whose heading the page is
	headed  map[string]bool // sections that have a heading
}

// Of returns the manual page of a reference configuration.
func Of(config string) (string, error) {
	entries, err := read(config)
	if err != nil {
		return "", err
	}
	w := &writer{heading: "none", headed: map[string]bool{}}
	w.WriteString(head)
	for i := range entries {
		e := &entries[i]
		name := e.keys[0].name
		if e.section {
			if e.comment != nil {
				w.head(name)
				w.paragraphs(e.comment)
			}
			continue
		}
		section := ""
		if at := strings.LastIndexByte(name, '.'); at >= 0 {
			section = name[:at]
		}
		w.head(section)
		w.item(e)
	}
	w.close()
	w.WriteString(foot)
	return w.String(), nil
}

// head begins a section, or goes on with it, if it is not the one that the page is in.
func (w *writer) head(section string) {
	if section == w.heading {
		return
	}
	w.close()
	title := section
	if section == "" {
		title = "The service"
	}
	if w.headed[section] {
		title += ", continued"
	}
	w.heading, w.headed[section] = section, true
	w.WriteString(".Ss " + title + "\n")
}

func (w *writer) close() {
	if w.listed {
		w.WriteString(".El\n")
	}
	w.listed = false
}

// item writes the keys of an entry, its comment and the defaults.
func (w *writer) item(e *entry) {
	if !w.listed {
		w.WriteString(".Bl -tag -width Ds\n")
		w.listed = true
	}
	var names, values []string
	same := true
	for _, k := range e.keys {
		names = append(names, k.name)
		values = append(values, shown(k.value))
		same = same && k.value == e.keys[0].value
	}
	w.WriteString(".It Ic " + strings.Join(names, " , Ic ") + "\n")
	w.paragraphs(e.comment)
	if same {
		values = values[:1]
	}
	word := "Default: "
	if len(values) > 1 {
		word = "Defaults: "
	}
	w.text(word + strings.Join(values, "; ") + ".")
}

// shown returns a default as people write it.
func shown(value string) string {
	switch value {
	case `""`, "[]":
		return "none"
	default:
		return value
	}
}

// paragraphs writes a comment: sentences a line each, and lines that begin with blanks as they are.
func (w *writer) paragraphs(lines []string) {
	var prose []string
	flush := func() {
		w.text(strings.Join(prose, " "))
		prose = nil
	}
	for i := 0; i < len(lines); i++ {
		if !strings.HasPrefix(lines[i], "  ") {
			prose = append(prose, lines[i])
			continue
		}
		flush()
		w.WriteString(".Bd -literal -offset Ds\n")
		for ; i < len(lines) && strings.HasPrefix(lines[i], "  "); i++ {
			w.WriteString(escaped(lines[i][2:]) + "\n")
		}
		i--
		w.WriteString(".Ed\n")
	}
	flush()
}

// sentence ends where the next one begins.
var sentence = regexp.MustCompile(`([.?]) +([A-Z"])`)

// text writes sentences, a line each.
func (w *writer) text(s string) {
	if s == "" {
		return
	}
	for line := range strings.SplitSeq(sentence.ReplaceAllString(s, "$1\n$2"), "\n") {
		w.WriteString(escaped(line) + "\n")
	}
}

// escaped returns a line as mdoc takes it for text.
func escaped(line string) string {
	line = strings.ReplaceAll(line, `\`, `\e`)
	if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
		line = `\&` + line
	}
	return strings.ReplaceAll(line, `"`, `\(dq`)
}
