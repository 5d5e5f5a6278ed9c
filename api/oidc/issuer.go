package oidc

import (
	"crypto/tls"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"portcullis/api/credential"
	"portcullis/api/outgoing"
	"portcullis/api/roles"
)

// NamePrefix begins the name of every owner of a token of an issuer: "oidc:ISSUER:NAME". No other credential may have such a name.
const NamePrefix = "oidc:"

// Bounds of the configuration, and of what a token says.
const (
	MaxIssuers = 8
	MaxRules   = 256

	maxURL      = 512
	maxClaim    = 256 // bytes of the name of a claim, and of a value that a rule compares
	maxName     = 128 // bytes of the claim that names the owner
	maxAudience = 256
)

// Issuer is an identity provider whose tokens are accepted.
type Issuer struct {
	Name      string // in names of owners: "oidc:NAME:..."
	URL       string // iss of its tokens; its metadata is below that
	Audience  string // that its tokens must have
	NameClaim string // of the owner's name; "": sub
	Rules     []Rule // the first one that holds assigns the role
	TLS       *tls.Config
	CA        []byte // PEM: the only authorities of its certificate, of which TLS is made; nil: those of the system
	Login     *Login // how people sign in; nil: they bring a token
}

// Rule assigns a role to tokens in which a claim has a value: is the string, or a list that has it. Claim is the name of a claim, or
// where a token has none of that name, the way to one in objects, such as realm_access.roles.
//
// A rule with the role tenant has the tenants of its owner, or the claim that holds their names.
type Rule struct {
	Claim, Value string
	Role         credential.Role
	Tenants      []string
	TenantsClaim string
}

// Problem is what makes no sense in an Issuer. Field is as in configuration files.
type Problem struct{ Field, Text string }

var issuerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// Problems returns what makes no sense.
func (i *Issuer) Problems() (out []Problem) {
	wrong := func(field, format string, args ...any) {
		out = append(out, Problem{field, fmt.Sprintf(format, args...)})
	}
	if !issuerName.MatchString(i.Name) {
		wrong("name", "%.64q: want 1 to 32 small letters, digits and hyphens, such as corp; it begins the names of its people in the audit log", i.Name)
	}
	if err := checkURL(i.URL); err != nil {
		wrong("issuer", "%.128q: %v", i.URL, err)
	} else if strings.ContainsAny(i.URL, "?#") {
		wrong("issuer", "%.128q: an issuer has neither query nor fragment", i.URL)
	}
	if i.Audience == "" || len(i.Audience) > maxAudience {
		wrong("audience", "%.64q: want 1 to %d bytes, what the provider puts into aud of tokens for this service", i.Audience, maxAudience)
	}
	if len(i.NameClaim) > maxClaim {
		wrong("name_claim", "is longer than %d bytes", maxClaim)
	}
	if len(i.Rules) == 0 {
		wrong("rules", "is empty: no token would have a role; want a list such as {claim: groups, value: fabric-operators, role: operator}")
	}
	if len(i.Rules) > MaxRules {
		wrong("rules", "%d of them: want at most %d", len(i.Rules), MaxRules)
	}
	if i.Login != nil {
		out = append(out, i.Login.problems(i)...)
	}
	for n, r := range i.Rules {
		field := fmt.Sprintf("rules.%d", n)
		if r.Claim == "" || len(r.Claim) > maxClaim {
			wrong(field+".claim", "%.64q: want the name of a claim, such as groups", r.Claim)
		}
		if r.Value == "" || len(r.Value) > maxClaim {
			wrong(field+".value", "%.64q: want 1 to %d bytes that the claim must have", r.Value, maxClaim)
		}
		if r.Role == "" {
			wrong(field+".role", "is missing: want %s", roles.OneOf(roles.All()))
		} else if !slices.Contains(roles.All(), r.Role) {
			wrong(field+".role", "%.32q: want %s", r.Role, roles.OneOf(roles.All()))
		} else if at, text := r.tenantsProblem(); text != "" {
			wrong(field+"."+at, "%s", text)
		}
	}
	return out
}

// tenantsProblem returns what makes no sense of the tenants of a rule, and its field; "" if nothing.
func (r *Rule) tenantsProblem() (field, text string) {
	named := len(r.Tenants) > 0
	switch {
	case r.Role != credential.Tenant && named:
		return "tenants", "is for the role tenant alone"
	case r.Role != credential.Tenant && r.TenantsClaim != "":
		return "tenants_claim", "is for the role tenant alone"
	case r.Role != credential.Tenant:
		return "", ""
	case named == (r.TenantsClaim != ""):
		return "tenants", "the role tenant needs either tenants, a list of names, or tenants_claim, the claim that holds them"
	case len(r.TenantsClaim) > maxClaim:
		return "tenants_claim", fmt.Sprintf("is longer than %d bytes", maxClaim)
	}
	if named {
		if err := credential.CheckTenants(r.Tenants); err != nil {
			return "tenants", err.Error()
		}
	}
	return "", ""
}

// tenantsOf returns the tenants of a token to which the rule assigns the role tenant.
func (i *Issuer) tenantsOf(r *Rule, c *claims) ([]string, error) {
	if r.TenantsClaim == "" {
		return r.Tenants, nil
	}
	var names []string
	switch v := claim(c.all, r.TenantsClaim).(type) {
	case string:
		names = []string{v}
	case []any:
		for _, one := range v {
			name, _ := one.(string)
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if err := credential.CheckTenants(names); err != nil {
		return nil, &Refused{
			Forbidden: true, Detail: fmt.Sprintf("a rule of the issuer %s assigns the role tenant to this token, and its claim %s does not say of which tenants: %v", i.Name, r.TenantsClaim, err),
			Hint: "have the provider put the names of the tenants there, a text or a list of texts",
		}
	}
	return names, nil
}

// checkURL refuses what is no https URL, and one with a password in it.
func checkURL(text string) error {
	u, fault := outgoing.Judge(text)
	switch {
	case fault == outgoing.Form || len(text) > maxURL || u.Scheme != "https":
		return errors.New("want https://HOST[:PORT]/PATH")
	case fault == outgoing.Password:
		return errors.New("a password in a URL gets into logs: leave it out")
	}
	return nil
}

// owner returns who a token was made for, by the rules.
func (i *Issuer) owner(c *claims) (credential.Principal, error) {
	name, err := i.nameOf(c)
	if err != nil {
		return credential.Principal{}, err
	}
	who := credential.Principal{Name: NamePrefix + i.Name + ":" + name, Provider: i.Name, Created: c.IssuedAt.Time(), Expires: c.Expiry.Time().Add(Leeway)}
	for _, r := range i.Rules {
		if has(claim(c.all, r.Claim), r.Value) {
			who.Role = r.Role
			if r.Role == credential.Tenant {
				if who.Tenants, err = i.tenantsOf(&r, c); err != nil {
					return credential.Principal{}, err
				}
			}
			return who, nil
		}
	}
	return who, &Refused{
		Forbidden: true, Detail: who.Name + " is known, and no rule of the issuer " + i.Name + " assigns a role to this token",
		Hint: "have the provider put one of the values of rules into the token, or add a rule to oidc in the configuration of the service",
	}
}

// nameOf returns what the claim that names owners holds.
func (i *Issuer) nameOf(c *claims) (string, error) {
	from := i.NameClaim
	if from == "" {
		from = "sub"
	}
	name, _ := claim(c.all, from).(string)
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || r == ' ' || !unicode.IsPrint(r) }) {
		return "", refuse("its claim %s is no name: want 1 to %d bytes of printable characters without blanks", "have the provider put a name there, or name another claim at name_claim", from, maxName)
	}
	if verified, _ := c.all["email_verified"].(bool); from == "email" && !verified {
		return "", refuse("the provider has not verified the address in its claim email", "have the address verified, or name another claim at name_claim")
	}
	return name, nil
}

// claim returns a claim by its name, or by the way to it in objects; nil without one.
func claim(all map[string]any, name string) any {
	if v, ok := all[name]; ok {
		return v
	}
	first, rest, below := strings.Cut(name, ".")
	object, ok := all[first].(map[string]any)
	if !below || !ok {
		return nil
	}
	return claim(object, rest)
}

// has reports whether a claim is a string, or has it in its list.
func has(v any, want string) bool {
	switch v := v.(type) {
	case string:
		return v == want
	case []any:
		for _, one := range v {
			if s, ok := one.(string); ok && s == want {
				return true
			}
		}
	}
	return false
}
