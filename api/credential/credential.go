// Package credential holds the credentials of operators: who owns a token, what its role is, with which P_Keys and hosts it may have to
// do, and when it ends.
//
// The service keeps digests alone, which it reads from the tokens file. What a role may do is decided by package roles.
package credential

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"portcullis/api/roles"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/strictyaml"
)

// Prefix begins every operator token, so that one that leaked into a log
// or a repository is found by a scanner.
const Prefix = "pcop_"

// Bounds of the tokens file.
const (
	maxTokens     = 1000
	maxTokensFile = 1 << 20 // bytes
)

// New draws an operator token of 256 random bits and returns it with the digest that belongs in the tokens file.
func New() (token, sha256Hex string) {
	var b [32]byte
	rand.Read(b[:]) // never fails: crypto/rand aborts the program instead
	token = Prefix + base64.RawURLEncoding.EncodeToString(b[:])
	sum := sha256.Sum256([]byte(token))
	return token, hex.EncodeToString(sum[:])
}

// Role is what a credential was made for.
type Role = roles.Role

// Some of the roles. Package roles has all, and what each may do.
const (
	Viewer   = roles.Viewer
	Tenant   = roles.Tenant
	Operator = roles.Operator
)

// Principal is the owner of a credential.
type Principal struct {
	Name  string // actor in the audit log
	Role  Role
	PKeys []ib.PKeyRange // that it may have to do with; nil: all, and it may name none
	Hosts []string       // of one with PKeys: patterns of the hosts that it may take into its clusters

	Tenants []string // of one with the role tenant: those that it has to do with

	Provider string // that made the token or certificate, by its name in the configuration; "": it is of the tokens file
	Machine  bool   // it is a client certificate, and Provider the name of its authorities

	Created time.Time // zero: not known
	Expires time.Time // from then on it is refused; zero: it has no end
}

// Kind names what the owner authenticates with.
func (p *Principal) Kind() string {
	if p.Machine {
		return "client certificate"
	}
	return "token"
}

// Ended reports whether the credential has an end that is over.
func (p *Principal) Ended(now time.Time) bool { return !p.Expires.IsZero() && !now.Before(p.Expires) }

// Soon reports whether the credential ends within 30 days, or within a third of its life where it lives shorter and says
// since when, or has ended.
func (p *Principal) Soon(now time.Time) bool {
	warn := 30 * 24 * time.Hour
	if !p.Created.IsZero() {
		warn = min(warn, p.Expires.Sub(p.Created)/3)
	}
	return !p.Expires.IsZero() && p.Expires.Sub(now) <= warn
}

// Tokens are the operator credentials the service knows. It holds digests only. The zero value knows none and admits no
// caller.
type Tokens struct {
	file    string
	entries map[[sha256.Size]byte]Principal // by digest of the token
}

// tokenFile is the YAML form: a list of name, role and SHA-256 of the token, maybe
// with ranges of P_Keys and the hosts that go with them, or tenants, and with dates.
type tokenFile struct {
	Tokens []struct {
		Name   string    `yaml:"name"`
		Role   Role      `yaml:"role"`
		SHA256 string    `yaml:"sha256"`
		PKeys  yaml.Node `yaml:"p_keys"` // absent is another thing than empty
		Hosts  []string  `yaml:"hosts"`

		Tenants yaml.Node `yaml:"tenants"` // absent is another thing than empty

		Created yaml.Node `yaml:"created"` // absent is another thing than empty
		Expires yaml.Node `yaml:"expires"`
	} `yaml:"tokens"`
}

// Parse reads a tokens file. Unknown keys, doubled names and doubled
// digests are refused; every problem is reported with its place in the file.
func Parse(file string, data []byte) (*Tokens, error) {
	t, err := parse("tokens file "+file, data)
	if err == nil {
		t.file = file
	}
	return t, err
}

// CheckEntry returns what Parse would find wrong with an entry that is not in a file yet.
func CheckEntry(entry string) error {
	_, err := parse("new entry", []byte("tokens:\n"+entry))
	return err
}

// parse reads tokens from what it names so in errors.
func parse(from string, data []byte) (*Tokens, error) {
	var f tokenFile
	if err := strictyaml.Load(from, data, maxTokensFile, &f); err != nil {
		return nil, err
	}
	if len(f.Tokens) > maxTokens {
		return nil, fmt.Errorf("%s: %d tokens, at most %d", from, len(f.Tokens), maxTokens)
	}
	t, errs := &Tokens{entries: map[[sha256.Size]byte]Principal{}}, []error(nil)
	names := map[string]bool{}
	for i, e := range f.Tokens {
		place := fmt.Sprintf("%s: token %d (%q)", from, i+1, e.Name)
		digest, err := hex.DecodeString(e.SHA256)
		who := Principal{Name: e.Name, Role: e.Role}
		ranges, wrong := pkeyRanges(&e.PKeys)
		if wrong != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, wrong))
		}
		who.PKeys, who.Hosts = ranges, e.Hosts
		if wrong := who.dates(&e.Created, &e.Expires); wrong != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, wrong))
		}
		if wrong := hostPatterns(e.Hosts, ranges != nil); wrong != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, wrong))
		}
		if wrong := who.tenants(&e.Tenants); wrong != nil {
			errs = append(errs, fmt.Errorf("%s: %w", place, wrong))
		}
		switch {
		case e.Name == "":
			errs = append(errs, fmt.Errorf("%s: name is missing", place))
		case names[e.Name]:
			errs = append(errs, fmt.Errorf("%s: name is used twice", place))
		}
		if e.Role == "" {
			errs = append(errs, fmt.Errorf("%s: role is missing: want %s", place, roles.OneOf(roles.All())))
		}
		if err != nil || len(digest) != sha256.Size {
			errs = append(errs, fmt.Errorf("%s: sha256: want 64 hexadecimal digits", place))
			continue
		}
		key := [sha256.Size]byte(digest)
		if _, twice := t.entries[key]; twice {
			errs = append(errs, fmt.Errorf("%s: sha256 is used twice", place))
		}
		names[e.Name], t.entries[key] = true, who
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// dates reads when a token was made and when it ends.
func (p *Principal) dates(created, expires *yaml.Node) (err error) {
	for _, d := range []struct {
		key  string
		node *yaml.Node
		to   *time.Time
	}{{"created", created, &p.Created}, {"expires", expires, &p.Expires}} {
		if d.node.IsZero() {
			continue
		}
		at, wrong := time.Parse(time.RFC3339, d.node.Value)
		if wrong != nil || at.IsZero() {
			err = errors.Join(err, fmt.Errorf("%s %q: want a time (RFC 3339) such as 2027-01-31T00:00:00Z, or leave it out", d.key, d.node.Value))
		}
		*d.to = at
	}
	if err == nil && !p.Expires.IsZero() && !p.Expires.After(p.Created) {
		err = fmt.Errorf("expires %s is not after created %s", stamp(p.Expires), stamp(p.Created))
	}
	return err
}

// maxHostPatterns bounds what is compared for one assignment.
const maxHostPatterns = 1000

// hostPatterns checks the patterns of hosts of a token.
func hostPatterns(patterns []string, confined bool) error {
	switch {
	case len(patterns) > 0 && !confined:
		return errors.New("hosts is for tokens with p_keys: one without them may take any host")
	case len(patterns) > maxHostPatterns:
		return fmt.Errorf("hosts: %d patterns, at most %d", len(patterns), maxHostPatterns)
	}
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil || p == "" {
			return fmt.Errorf("hosts: %q is no pattern: want a host id, in which * stands for any letters, ? for one and [a-z] for one of several", p)
		}
	}
	return nil
}

// pkeyRanges reads the ranges of P_Keys of a token, nil without any. Where they should
// be and nothing is, that is an error: the token would have to do with all clusters.
func pkeyRanges(n *yaml.Node) (ranges []ib.PKeyRange, err error) {
	if n.IsZero() {
		return nil, nil
	}
	var texts []string
	if err := n.Decode(&texts); err != nil {
		return nil, fmt.Errorf("p_keys: %w", err)
	}
	if len(texts) == 0 {
		return nil, errors.New("p_keys is empty: leave it out, or name ranges such as 0x0100-0x01ff")
	}
	for _, text := range texts {
		r, wrong := ib.ParsePKeyRange(text)
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("p_keys: %w", wrong))
		}
		ranges = append(ranges, r)
	}
	return ranges, err
}

// Len is the number of known tokens.
func (t *Tokens) Len() int { return len(t.entries) }

// All returns the owners of all tokens, by name.
func (t *Tokens) All() []Principal {
	if t == nil {
		return nil
	}
	return slices.SortedFunc(maps.Values(t.entries), func(a, b Principal) int { return strings.Compare(a.Name, b.Name) })
}

// Warnings returns what an operator should know of the tokens at now: those that have ended or end soon, and those that
// have no end.
func (t *Tokens) Warnings(now time.Time) (out []string) {
	var endless []string
	for _, p := range t.All() {
		switch {
		case p.Expires.IsZero():
			endless = append(endless, strconv.Quote(p.Name))
		case p.Ended(now):
			out = append(out, fmt.Sprintf("tokens file %s: token %q ended at %s and is refused: make another one (portcullisd token), or remove it", t.file, p.Name, stamp(p.Expires)))
		case p.Soon(now):
			out = append(out, fmt.Sprintf("tokens file %s: token %q ends at %s: make another one (portcullisd token)", t.file, p.Name, stamp(p.Expires)))
		}
	}
	if len(endless) > 0 {
		out = append(out, fmt.Sprintf("tokens file %s: these tokens have no end: %s; a person who finds one can use it for ever: add expires to each, such as expires: %s",
			t.file, strings.Join(endless, ", "), stamp(now.AddDate(1, 0, 0).Truncate(24*time.Hour))))
	}
	return out
}

// Find returns the owner of token, unless that has ended. It looks the digest up, so it costs the same whatever the number of tokens, and each
// request can be counted by its token before anything else is done for it. How long that takes lets a caller learn nothing of
// use: he does not choose how near the digest of a guess comes to another one.
func (t *Tokens) Find(token string, now time.Time) (Principal, bool) {
	who, known := t.owner(token)
	if !known || who.Ended(now) {
		return Principal{}, false
	}
	return who, true
}

// Ended returns the owner of a token that was good until its end.
func (t *Tokens) Ended(token string, now time.Time) (Principal, bool) {
	who, known := t.owner(token)
	return who, known && who.Ended(now)
}

func (t *Tokens) owner(token string) (Principal, bool) {
	if t == nil || token == "" {
		return Principal{}, false
	}
	who, known := t.entries[sha256.Sum256([]byte(token))]
	return who, known
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
