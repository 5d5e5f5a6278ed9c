//go:build attack

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// document is the OpenAPI document of a service, with the schemas of its answers.
type document struct {
	operations []operation
	schemas    map[string]any
	answers    map[string]*jsonschema.Schema // by operation and status
}

// operation is one of its operations.
type operation struct {
	method, path string
	parameters   []parameter
	body         map[string]any // schema of the request; nil: none
	guarded      bool           // needs a credential of the document
}

type parameter struct {
	Name   string         `json:"name"`
	In     string         `json:"in"`
	Schema map[string]any `json:"schema"`
}

func readDocument(t *testing.T, a *underAttack) *document {
	t.Helper()
	resp, err := a.http.Get("https://" + a.address + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var raw struct {
		Paths map[string]map[string]struct {
			Parameters  []parameter           `json:"parameters"`
			Security    []map[string][]string `json:"security"`
			RequestBody *struct {
				Content map[string]struct {
					Schema map[string]any `json:"schema"`
				} `json:"content"`
			} `json:"requestBody"`
			Responses map[string]struct {
				Content map[string]struct {
					Schema map[string]any `json:"schema"`
				} `json:"content"`
			} `json:"responses"`
		} `json:"paths"`
		Components struct {
			Schemas map[string]any `json:"schemas"`
		} `json:"components"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	d := &document{schemas: raw.Components.Schemas, answers: map[string]*jsonschema.Schema{}}
	compiler := jsonschema.NewCompiler()
	whole := map[string]any{"components": map[string]any{"schemas": raw.Components.Schemas}}
	wrapped := map[string]any{}
	for path, methods := range raw.Paths {
		for method, op := range methods {
			o := operation{method: strings.ToUpper(method), path: path, parameters: op.Parameters, guarded: len(op.Security) > 0}
			if op.RequestBody != nil {
				o.body = op.RequestBody.Content["application/json"].Schema
			}
			for status, answer := range op.Responses {
				for _, content := range answer.Content {
					if content.Schema != nil {
						wrapped[o.key(status)] = content.Schema
					}
				}
			}
			d.operations = append(d.operations, o)
		}
	}
	slices.SortFunc(d.operations, func(a, b operation) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	whole["answers"] = wrapped
	const name = "https://portcullis.example/openapi.json"
	if err := compiler.AddResource(name, whole); err != nil {
		t.Fatal(err)
	}
	for key := range wrapped {
		schema, err := compiler.Compile(name + "#/answers/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(key)))
		if err != nil {
			t.Fatal(err)
		}
		d.answers[key] = schema
	}
	return d
}

func (o *operation) key(status string) string { return o.method + " " + o.path + " " + status }

// fits reports how an answer differs from the document.
func (d *document) fits(op *operation, status int, v any) error {
	schema := d.answers[op.key(strconv.Itoa(status))]
	if schema == nil {
		schema = d.answers[op.key("default")]
	}
	if schema == nil {
		return nil
	}
	return schema.Validate(v)
}

// madeUp is a request.
type madeUp struct {
	path, body string
	header     map[string]string
}

func (m *madeUp) describe(op *operation, role string) string {
	return fmt.Sprintf("%s %.200s by %q with %.400s", op.method, m.path, role, m.body)
}

// request makes up a request of an operation: a valid one as far as the document says what is valid, or one that is not.
func (d *document) request(r *rand.Rand, op *operation, token string) *madeUp {
	m := &madeUp{path: op.path, header: map[string]string{"Content-Type": "application/json"}}
	query := url.Values{}
	for _, p := range op.parameters {
		text := odd(r)
		if r.IntN(3) > 0 {
			text = strings.Trim(fmt.Sprint(d.value(r, p.Schema, 0)), "[]")
		}
		switch p.In {
		case "path":
			m.path = strings.ReplaceAll(m.path, "{"+p.Name+"}", url.PathEscape(text))
		case "query":
			if r.IntN(2) == 0 {
				query.Set(p.Name, text)
			}
		case "header":
			m.header[p.Name] = printable(text)
		}
	}
	if len(query) > 0 {
		m.path += "?" + query.Encode()
	}
	if token != "" {
		m.header["Authorization"] = "Bearer " + token
	}
	if op.method != http.MethodGet && r.IntN(4) == 0 {
		m.header["If-Match"] = printable(odd(r))
	}
	if op.body == nil {
		return m
	}
	v := d.value(r, op.body, 0)
	for range r.IntN(3) {
		v = spoil(r, v)
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // of values that were decoded or made here
	}
	m.body = string(text)
	if r.IntN(8) == 0 {
		m.body = scratch(r, m.body)
	}
	return m
}

// value makes up a value of a schema.
func (d *document) value(r *rand.Rand, schema map[string]any, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		schema, _ = d.schemas[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	if all, ok := schema["enum"].([]any); ok {
		return all[r.IntN(len(all))]
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind, _ = kinds[r.IntN(len(kinds))].(string)
	}
	switch kind {
	case "object":
		out := map[string]any{}
		properties, _ := schema["properties"].(map[string]any)
		required, _ := schema["required"].([]any)
		for name, p := range properties {
			if name == "$schema" || depth > 5 || !slices.Contains(required, any(name)) && r.IntN(2) == 0 {
				continue
			}
			if p, ok := p.(map[string]any); ok {
				out[name] = d.value(r, p, depth+1)
			}
		}
		return out
	case "array":
		items, _ := schema["items"].(map[string]any)
		out := []any{}
		for range r.IntN(4) {
			out = append(out, d.value(r, items, depth+1))
		}
		return out
	case "integer", "number":
		return []any{0, 1, 60, 3600, 65535}[r.IntN(5)]
	case "boolean":
		return r.IntN(2) == 0
	case "null":
		return nil
	default:
		if schema["contentEncoding"] == "base64" {
			return []any{"", "QUFBQQ==", "AAAA"}[r.IntN(3)]
		}
		return names[r.IntN(len(names))]
	}
}

// names are those of objects that exist, and others that could.
var names = []string{"acme", "acme-1", "h1", "h2", "0x8101", "0x0101", "0x0020000000000201", "2026-01-01T00:00:00Z", "default", "1", "report", "because"}

// odd returns a text that no field accepts.
func odd(r *rand.Rand) string {
	all := []string{
		"", "..", "../../etc/passwd", "%00", "\x00", "a/b", strings.Repeat("x", 3000), "-1", "1e300", "9223372036854775808", "0x", "NaN", "ÄÖ\u202e", "\x1b[2J",
		"\ud7ff\uffff", "'; --", "{}", "[]", "*", "?", "#", ";", " ", "\n", "\"", "1.5", "null", "true", "0xffff", "0x7fff", "18446744073709551615",
	}
	return all[r.IntN(len(all))]
}

// printable returns a text that a header may hold.
func printable(text string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c > '~' {
			return '_'
		}
		return c
	}, text)
}

// spoil changes one thing in a value.
func spoil(r *rand.Rand, v any) any {
	switch in := v.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(in))
		switch {
		case len(keys) == 0 || r.IntN(6) == 0:
			in[[]string{"epoch", "phase", "admitted", "Host", "x", ""}[r.IntN(6)]] = wrong(r)
		case r.IntN(4) == 0:
			delete(in, keys[r.IntN(len(keys))])
		default:
			k := keys[r.IntN(len(keys))]
			in[k] = spoil(r, in[k])
		}
		return in
	case []any:
		if len(in) == 0 || r.IntN(4) == 0 {
			return slices.Repeat([]any{wrong(r)}, 1+r.IntN(400))
		}
		i := r.IntN(len(in))
		in[i] = spoil(r, in[i])
		return in
	default:
		return wrong(r)
	}
}

// wrong returns a value that few fields accept.
func wrong(r *rand.Rand) any {
	switch r.IntN(6) {
	case 0:
		return odd(r)
	case 1:
		return []any{nil, -1, 1 << 62, 1.5, 1e300, true}[r.IntN(6)]
	case 2:
		return map[string]any{"x": odd(r)}
	case 3:
		return []any{odd(r)}
	case 4:
		var deep any = 0
		for range r.IntN(40) {
			deep = []any{deep}
		}
		return deep
	default:
		return strings.Repeat("A", r.IntN(70<<10))
	}
}

// scratch makes a text no JSON, or other JSON.
func scratch(r *rand.Rand, text string) string {
	b := []byte(text)
	switch i := r.IntN(len(b) + 1); r.IntN(4) {
	case 0:
		return text[:i]
	case 1:
		return text + text
	case 2:
		return text[:i] + string([]byte{byte(r.IntN(256))}) + text[i:]
	default:
		if len(b) > 0 {
			b[i%len(b)] ^= byte(1 + r.IntN(255))
		}
		return string(b)
	}
}
