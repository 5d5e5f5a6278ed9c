// Package input reads the files that users name, and says what is wrong with
// them in terms of the file.
package input

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Small bounds, in bytes, files that people write by hand or programs make by the dozen lines: configurations, tokens,
// certificates, keys.
const Small = 1 << 20

// Large bounds, in bytes, files that describe a whole fabric.
const Large = 64 << 20

// ReadFile reads a file of at most most bytes, which need not be a regular one:
// a pipe such as bash's <(...) is read, too. No file takes more memory than that.
func ReadFile(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, name, most)
}

// Read reads what is left of r, at most most bytes; name is for errors.
func Read(r io.Reader, name string, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s: more than %d bytes", name, most)
	}
	return data, nil
}

// Explain returns the text of an error. Messages of the YAML library about our sources and about itself are rewritten as
// messages about the file.
func Explain(err error) string {
	text := err.Error()
	if many, ok := errors.AsType[*yaml.LoadErrors](err); ok {
		return strings.Replace(text, many.Error(), inTerms(strings.TrimPrefix(many.Error(), "yaml: construct errors: ")), 1)
	}
	if one, ok := errors.AsType[*yaml.LoadError](err); ok {
		where := ""
		if one.Mark.Line > 0 {
			where = fmt.Sprintf("line %d: ", one.Mark.Line)
		}
		return strings.Replace(text, one.Error(), where+inTerms(one.Message), 1)
	}
	return text
}

var (
	unknownKey = regexp.MustCompile(`field (\S+) not found in type [^\s;]+`)
	wrongShape = regexp.MustCompile("cannot construct !!(\\w+)( `[^`]*`)? into (\\[\\])?(struct \\{[^\\n]*?\\}|\\S+?)(; line |$)")
)

// inTerms says it without types of Go.
func inTerms(s string) string {
	s = strings.ReplaceAll(s, "<unknown position>: ", "")
	s = strings.TrimPrefix(strings.ReplaceAll(s, "yaml: no documents in stream", "it is empty"), "yaml: ")
	s = unknownKey.ReplaceAllString(s, "unknown key $1")
	return wrongShape.ReplaceAllString(s, "$1$2 does not belong here$5")
}
