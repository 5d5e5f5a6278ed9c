package clientcert

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"time"

	"portcullis/api/ca"
	"portcullis/api/credential"
	"portcullis/api/roles"
)

// NamePrefix begins the name of every owner of a certificate: "x509:AUTHORITY:spiffe://..." or "x509:AUTHORITY:DNS-NAME". No other
// credential may have such a name.
const NamePrefix = "x509:"

// Bounds of the configuration.
const (
	MaxAuthorities = 8
	MaxRoots       = 16 // certificates of one authority
	MaxRules       = 256
	MaxRefused     = 1024

	maxRoot = 16 << 10 // bytes of a certificate of an authority
)

// Authority is an authority whose certificates are accepted, or the authorities of a trust domain of SPIFFE.
type Authority struct {
	Name        string // in names of owners: "x509:NAME:..."
	TrustDomain string // of SPIFFE; "": its certificates have DNS names alone
	Roots       []*x509.Certificate
	Rules       []Rule   // the first one that holds assigns role and scope
	Refuse      []Denial // certificates that are refused whatever the rules say
}

// Rule assigns a role and a scope to certificates. Either SPIFFE or DNS is set.
type Rule struct {
	SPIFFE string // an ID, or the beginning of IDs up to a slash
	DNS    string // a name, in small letters
	Role   credential.Role
	Scope  credential.ScopeForm
}

// Denial names certificates that are refused. One of its fields is set.
type Denial struct {
	Serial string // of a certificate, in hexadecimal digits, maybe with colons
	SPIFFE string // as in Rule
	DNS    string // as in Rule
}

// Problem is what makes no sense in an Authority. Field is as in configuration files.
type Problem struct{ Field, Text string }

var (
	authorityName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)
	serialForm    = regexp.MustCompile(`^[0-9A-Fa-f]{1,2}(:?[0-9A-Fa-f]{2}){0,31}$`)
)

// Problems returns what makes no sense, of all but the roots.
func (a *Authority) Problems() (out []Problem) {
	wrong := func(field, format string, args ...any) {
		out = append(out, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !authorityName.MatchString(a.Name) {
		wrong("name", "%.64q: want 1 to 32 small letters, digits and hyphens, such as spire; it begins the names of its machines in the audit log", a.Name)
	}
	if a.TrustDomain != "" {
		if err := checkTrustDomain(a.TrustDomain); err != nil {
			wrong("trust_domain", "%v", err)
		}
	}
	if len(a.Rules) == 0 {
		wrong("rules", "is empty: no certificate would have a role; want a list such as {dns: slurm.example.org, role: scheduler}")
	}
	if len(a.Rules) > MaxRules {
		wrong("rules", "%d of them: want at most %d", len(a.Rules), MaxRules)
	}
	if len(a.Refuse) > MaxRefused {
		wrong("refuse", "%d of them: want at most %d", len(a.Refuse), MaxRefused)
	}
	for n := range a.Rules {
		r, field := &a.Rules[n], fmt.Sprintf("rules.%d", n)
		if at, text := a.subject(r.SPIFFE, r.DNS); text != "" {
			wrong(strings.TrimSuffix(field+"."+at, "."), "%s", text)
		} else if before := slices.IndexFunc(a.Rules[:n], func(o Rule) bool { return o.covers(r) }); before >= 0 {
			wrong(field, "is never reached: the first rule that matches counts, and rules.%d matches each certificate that this one does", before)
		}
		if r.Role == "" {
			wrong(field+".role", "is missing: want %s", roles.OneOf(roles.All()))
		} else if !slices.Contains(roles.All(), r.Role) {
			wrong(field+".role", "%.32q: want %s", r.Role, roles.OneOf(roles.All()))
		} else if key, err := (&credential.Principal{Role: r.Role}).Scope(&r.Scope); err != nil {
			wrong(field+"."+key, "%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), key+": "), key+" "))
		}
	}
	for n := range a.Refuse {
		d, field := &a.Refuse[n], fmt.Sprintf("refuse.%d", n)
		switch {
		case d.Serial == "":
			if at, text := a.subject(d.SPIFFE, d.DNS); text != "" {
				wrong(strings.TrimSuffix(field+"."+at, "."), "%s", text)
			}
		case d.SPIFFE+d.DNS != "":
			wrong(field, "want one of serial, spiffe and dns")
		case !serialForm.MatchString(d.Serial):
			wrong(field+".serial", "%.64q: want the hexadecimal digits of a serial number, as openssl x509 -serial shows them", d.Serial)
		}
	}
	return out
}

// subject returns what makes no sense of the certificates that a rule is about, and at which key; "" if nothing.
func (a *Authority) subject(spiffe, dns string) (field, text string) {
	switch {
	case spiffe != "" && dns != "":
		return "", "has both spiffe and dns: a certificate is of one of them; write two entries"
	case spiffe == "" && dns == "":
		return "", "has neither spiffe nor dns: say whose certificates it is about"
	case dns != "" && strings.Contains(dns, "*"):
		return "dns", fmt.Sprintf("%.128q: a wildcard names no machine: write a name", dns)
	case dns != "" && !isDNS(dns):
		return "dns", fmt.Sprintf("%.128q: want a DNS name in small letters, such as slurm.example.org", dns)
	case dns != "":
		return "", ""
	}
	id, err := ParseID(strings.TrimSuffix(spiffe, "/"))
	switch {
	case err != nil:
		return "spiffe", fmt.Sprintf("%.128q: %v", spiffe, err)
	case a.TrustDomain == "":
		return "spiffe", "needs trust_domain beside ca_file: the trust domain of which these are the authorities"
	case id.TrustDomain != a.TrustDomain:
		return "spiffe", fmt.Sprintf("%.128q is not in the trust domain %s, of which these are the authorities", spiffe, a.TrustDomain)
	case id.Path == "" && !strings.HasSuffix(spiffe, "/"):
		return "spiffe", fmt.Sprintf("%.128q names a trust domain and none of its machines: end it with a slash for all of them", spiffe)
	}
	return "", ""
}

// matches reports whether a rule is about a certificate with these names, and by which of them.
func matches(spiffe, dns string, n *names) (name string, ok bool) {
	if dns != "" {
		return dns, slices.Contains(n.dns, dns)
	}
	if n.spiffe.TrustDomain == "" {
		return "", false
	}
	name = n.spiffe.String()
	return name, name == spiffe || strings.HasSuffix(spiffe, "/") && strings.HasPrefix(name, spiffe)
}

// covers reports whether r matches each certificate that other does.
func (r *Rule) covers(other *Rule) bool {
	if r.DNS != "" || other.DNS != "" {
		return r.DNS == other.DNS
	}
	return r.SPIFFE == other.SPIFFE || strings.HasSuffix(r.SPIFFE, "/") && strings.HasPrefix(other.SPIFFE, r.SPIFFE)
}

// refuses reports whether a certificate is refused whatever the rules say.
func (a *Authority) refuses(serial *big.Int, n *names) bool {
	return slices.ContainsFunc(a.Refuse, func(d Denial) bool {
		if d.Serial != "" {
			denied, ok := new(big.Int).SetString(strings.ReplaceAll(d.Serial, ":", ""), 16)
			return !ok || denied.Cmp(serial) == 0
		}
		_, about := matches(d.SPIFFE, d.DNS, n)
		return about
	})
}

// ReadRoots reads the certificates of a PEM file of authorities. It refuses what no authority of machines is.
func ReadRoots(data []byte) (roots []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("it holds a block %.32q: leave only certificates of authorities in it", block.Type)
		}
		c, wrong := x509.ParseCertificate(block.Bytes)
		if wrong != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(roots)+1, wrong)
		}
		if wrong := checkRoot(c); wrong != nil {
			err = errors.Join(err, fmt.Errorf("certificate %d, %.128q: %w", len(roots)+1, c.Subject.String(), wrong))
		}
		if slices.ContainsFunc(roots, c.Equal) {
			err = errors.Join(err, fmt.Errorf("certificate %d, %.128q, is there twice", len(roots)+1, c.Subject.String()))
		}
		roots = append(roots, c)
	}
	switch {
	case err != nil:
		return nil, err
	case len(roots) == 0:
		return nil, errors.New("it holds no certificate in PEM form")
	case len(roots) > MaxRoots:
		return nil, fmt.Errorf("it holds %d certificates, at most %d", len(roots), MaxRoots)
	}
	return roots, nil
}

func checkRoot(c *x509.Certificate) error {
	switch {
	case ca.OfHosts(c):
		return errors.New("it signs certificates of hosts, on which tenants are root: none of these may become an operator")
	case !c.BasicConstraintsValid || !c.IsCA:
		return errors.New("it is no certificate of an authority (CA:TRUE is missing)")
	case c.KeyUsage != 0 && c.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("its key usage does not let it sign certificates")
	case len(c.Raw) > maxRoot:
		return fmt.Errorf("it has %d bytes, at most %d", len(c.Raw), maxRoot)
	}
	return nil
}

// Conflicts returns what makes no sense of authorities beside each other. Field begins with the number of an authority.
func Conflicts(all []Authority) (out []Problem) {
	if len(all) > MaxAuthorities {
		out = append(out, Problem{"", fmt.Sprintf("%d of them: want at most %d", len(all), MaxAuthorities)})
	}
	for n := range all {
		a := &all[n]
		for m := range all[:n] {
			o := &all[m]
			if a.Name == o.Name {
				out = append(out, Problem{fmt.Sprintf("%d.name", n), a.Name + " is named twice: two machines of one name would be the same"})
			}
			if a.TrustDomain != "" && a.TrustDomain == o.TrustDomain {
				out = append(out, Problem{fmt.Sprintf("%d.trust_domain", n), a.TrustDomain + " is that of " + o.Name + " already: a trust domain has one set of authorities; put them into one file"})
			}
			for _, c := range a.Roots {
				if slices.ContainsFunc(o.Roots, func(other *x509.Certificate) bool { return sameKey(c, other) }) {
					out = append(out, Problem{fmt.Sprintf("%d.ca_file", n), fmt.Sprintf("%.128q is an authority of %s already: write the rules of one authority at one place", c.Subject.String(), o.Name)})
				}
			}
		}
	}
	return out
}

// sameKey reports whether two certificates are of one authority.
func sameKey(a, b *x509.Certificate) bool {
	return string(a.RawSubjectPublicKeyInfo) == string(b.RawSubjectPublicKeyInfo)
}

// Ends returns when the last certificate of an authority ends.
func (a *Authority) Ends() (last time.Time) {
	for _, c := range a.Roots {
		if c.NotAfter.After(last) {
			last = c.NotAfter
		}
	}
	return last
}

// Soon returns an error that says when the last certificate of an authority ends, if that is within 30 days.
func (a *Authority) Soon(now time.Time) error {
	switch end := a.Ends(); {
	case !now.Before(end):
		return fmt.Errorf("the last certificate in the ca_file of %s ended at %s: its machines are refused; have the authority publish another one, then: systemctl reload portcullisd", a.Name, stamp(end))
	case end.Sub(now) <= 30*24*time.Hour:
		return fmt.Errorf("the last certificate in the ca_file of %s ends at %s: have the authority publish another one, then: systemctl reload portcullisd", a.Name, stamp(end))
	}
	return nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
