package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"portcullis/cmd/internal/input"
	"portcullis/cmd/portcullisd/command"
	"portcullis/fabricsm/strictyaml"
)

// maxConfig bounds a configuration file.
const maxConfig = 1 << 20

// Load reads and checks a configuration file. Every problem is reported,
// a line each, with file and line.
func Load(file string) (*Config, error) {
	data, err := Read(file)
	if err != nil {
		return nil, command.Hint(err,
			"name one with --config, or make a fresh installation: portcullisd init --dir /etc/portcullis")
	}
	return Parse(file, data)
}

// Read reads a configuration file, and rejects one that is too large.
func Read(file string) ([]byte, error) {
	data, err := input.ReadFile(file, maxConfig)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}

// Parse reads and checks the text of a configuration file.
func Parse(file string, data []byte) (*Config, error) {
	c := Default()
	from, err := decode(file, data, c)
	if err != nil {
		return nil, err
	}
	from.add(c.check()...)
	if err := from.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// source is a configuration file that was read, and what is wrong in it.
type source struct {
	file   string
	root   *yaml.Node
	wrong  []complaint
	syntax bool // some of it is of keys or types, not of values
}

// complaint is what is wrong on a line; 0 is the file as a whole.
type complaint struct {
	line int
	text string
}

// decode reads a file into c. Unknown keys and values of a wrong type do
// not end it: they become complaints, and c keeps what it has there.
func decode(file string, data []byte, c *Config) (_ *source, err error) {
	c.File = file
	s := &source{file: file}
	if len(data) <= maxConfig && strictyaml.Blank(data) {
		return s, nil
	}
	if s.root, err = strictyaml.Document(file, data, maxConfig); err != nil {
		s.complain(err)
		return nil, s.err()
	}
	s.complain(strictyaml.Load(file, data, maxConfig, c))
	return s, nil
}

const seeReference = "portcullisd --print-config shows every key"

// complain takes what the parser says.
func (s *source) complain(err error) {
	e, ok := errors.AsType[*strictyaml.Error](err)
	if !ok {
		return
	}
	s.syntax = true
	for _, p := range e.Problems {
		text := p.Text
		if strings.HasPrefix(p.Message, "cannot construct ") {
			text = ofOurs.ReplaceAllStringFunc(p.Message, func(s string) string {
				m := ofOurs.FindStringSubmatch(s)
				return m[1] + nameOfType(m[2]) + m[3]
			})
		}
		s.wrong = append(s.wrong, complaint{p.Line, text})
	}
}

// ofOurs matches the end of a message that names a type of this package, which a value cannot have.
var ofOurs = regexp.MustCompile(`( into [^ ]*)\bconfig\.(\w+)( \(TextUnmarshaler\))?$`)

// nameOfType returns the name of a type in messages: those of sections end with Config, and all begin with a small letter.
func nameOfType(name string) string {
	small := strings.ToLower(name[:1]) + name[1:]
	switch name {
	case small, "Config", "Role", "HealthRule":
		return small
	case "LIDs", "QoS", "SA", "SMPs", "TLS":
		return strings.ToLower(name) + "Config"
	default:
		return small + "Config"
	}
}

// add takes problems of values.
func (s *source) add(problems ...problem) {
	for _, p := range problems {
		s.wrong = append(s.wrong, complaint{strictyaml.LineOf(s.root, strings.Split(p.key, ".")...), p.key + ": " + p.message})
	}
}

// err returns all complaints, by line; nil when there are none.
func (s *source) err() error {
	if len(s.wrong) == 0 {
		return nil
	}
	slices.SortStableFunc(s.wrong, func(a, b complaint) int { return a.line - b.line })
	var lines []error
	for _, w := range s.wrong {
		where := s.file
		if w.line > 0 {
			where = fmt.Sprintf("%s:%d", s.file, w.line)
		}
		lines = append(lines, fmt.Errorf("%s: %s", where, w.text))
	}
	if s.syntax {
		return command.Hint(errors.Join(lines...), seeReference)
	}
	return errors.Join(lines...)
}

// problem is a value that makes no sense, at a key such as "fabric.port". The
// elements of lists count from 0: "fabric.ports.rules.0".
type problem struct {
	key     string
	message string
}
