package isolation

import (
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/proof"
	"portcullis/fabricsm/proof/disclosure"
)

const (
	// maxDisclosures bounds the disclosures that a report shows.
	maxDisclosures = 20
	curePolicy     = "set fabric.sa.sa_enhanced_trust_model and sa_check_sgid_spoofing to true; report it if they are: subnet administration must not answer this without the SA_Key"
	cureKey        = "replace the key (portcullis keys), and report it: no answer may show a key"
)

// heardOf says in each statement what is claimed of subnet administration, without a number or a name of others.
var heardOf = map[string]string{
	v1.SAConfined:    "subnet administration was asked from a sample of ports, without a key: it named no port and no partition of another party with which the port that asked shares no P_Key, and showed no key",
	v1.SADiscloses:   "subnet administration was asked from a sample of ports, without a key: it named ports or partitions of parties with which the port that asked shares no P_Key, or showed a key; the parties are not proven to be isolated",
	v1.SAUnknown:     "subnet administration was asked from a sample of ports, without a key: what it answered could not be judged as a whole",
	v1.SANotExamined: "what subnet administration answers to ports was not examined",
}

// Heard is what subnet administration answered to ports, judged by the tables of the same reading.
type Heard struct {
	Tables *disclosure.Tables
	// Why is why nothing was examined; empty: it was.
	Why string

	Ports, Parties, Unasked, Silent        int
	Questions, Answers, Records, Undecided int
	Findings                               []disclosure.Finding
	Cut                                    bool // the time was over before all ports had asked that were to
	Withdrawn                              int  // findings that rest on tables which may have changed since: they are to be looked at again
}

// Hear adds what ports were answered to what is proven, before it is used.
func (p *Proven) Hear(h *Heard) { p.heard = h }

// concern is the parties that disclosures concern: nothing of theirs counts as isolated.
type concern struct {
	pairs   map[pair]bool
	parties map[proof.Owner]bool // with all others
	all     bool
}

func (c *concern) has(a, b proof.Owner) bool {
	return c.all || c.pairs[pairOf(a, b)] || c.parties[a] || c.parties[b]
}

// concern returns the parties that findings concern. Two parties of which one is a tenant are a pair that reports have; otherwise each counts by itself.
func (p *Proven) concern() concern {
	t := concern{pairs: map[pair]bool{}, parties: map[proof.Owner]bool{}}
	if p.heard == nil {
		return t
	}
	for i := range p.heard.Findings {
		from, about := p.concerned(&p.heard.Findings[i])
		if from != nil && about != nil && isParty(from) && isParty(about) && (isTenant(from) || isTenant(about)) {
			t.pairs[pairOf(*from, *about)] = true
			continue
		}
		t.all = t.all || from == nil && about == nil
		for _, o := range []*proof.Owner{from, about} {
			if o != nil {
				t.parties[*o] = true
			}
		}
	}
	return t
}

func isTenant(o *proof.Owner) bool { return o.Kind == proof.Tenant && o.Name != NoTenant }

func isParty(o *proof.Owner) bool { return o.Kind <= proof.Tenant }

// concerned returns the party of the port that asked, nil: a LID that no port has, and the party that was disclosed, nil: none, or not known.
func (p *Proven) concerned(f *disclosure.Finding) (from, about *proof.Owner) {
	if f.Asker != disclosure.None {
		o := p.heard.Tables.Owner(f.Asker)
		from = &o
	}
	switch {
	case f.Subject != disclosure.None:
		o := p.heard.Tables.Owner(f.Subject)
		about = &o
	case f.PKey != 0 && p.in.owns[f.PKey.Base()] != "":
		about = &proof.Owner{Kind: proof.Tenant, Name: p.in.owns[f.PKey.Base()]}
	}
	return from, about
}

// concerns reports whether a finding is from or about a tenant; a key concerns all.
func (p *Proven) concerns(f *disclosure.Finding, tenant string) bool {
	from, about := p.concerned(f)
	is := func(o *proof.Owner) bool { return o != nil && o.Kind == proof.Tenant && o.Name == tenant }
	return tenant == "" || is(from) || is(about) || from == nil && about == nil
}

// administration says what was found, of all or from and about one tenant.
func (r *reporter) administration() {
	h, out := r.of.heard, &r.out.Administration
	out.Disclosures = []v1.IsolationDisclosure{}
	if h == nil {
		h = &Heard{Why: "this examination did not ask"}
	}
	out.Ports, out.Parties, out.Unasked, out.Silent = h.Ports, h.Parties, h.Unasked, h.Silent
	out.Questions, out.Answers, out.Records, out.Undecided = h.Questions, h.Answers, h.Records, h.Undecided
	for i := range h.Findings {
		if !r.of.concerns(&h.Findings[i], r.tenant) {
			continue
		}
		if out.Disclosed++; len(out.Disclosures) < maxDisclosures {
			out.Disclosures = append(out.Disclosures, r.of.disclosure(&h.Findings[i]))
		}
	}
	switch {
	case h.Why != "":
		out.Verdict, out.Reason = v1.SANotExamined, h.Why
	case out.Disclosed > 0:
		out.Verdict = v1.SADiscloses
	case h.Undecided > 0:
		out.Verdict, out.Reason = v1.SAUnknown, "answers name ports that were not found, or whose tables were not read, or were not whole"
	default:
		out.Verdict = v1.SAConfined
	}
}

// disclosure shows a finding.
func (p *Proven) disclosure(f *disclosure.Finding) v1.IsolationDisclosure {
	out := v1.IsolationDisclosure{
		Record: f.Kind(), Field: f.Field, Value: f.Value, PKey: f.PKey, Secret: f.Secret, From: p.port(f.Asker), About: p.port(f.Subject), Cure: curePolicy,
	}
	switch {
	case f.Secret:
		out.Cure = cureKey
	case f.PKey != 0:
		out.About.Party = p.in.owns[f.PKey.Base()]
	}
	return out
}

// port names a port as people do.
func (p *Proven) port(i int) (out v1.DisclosurePort) {
	if i == disclosure.None {
		return out
	}
	end, lid := p.heard.Tables.End(i)
	out = v1.DisclosurePort{Party: nameOf(p.heard.Tables.Owner(i)), GUID: end.GUID, Place: end.At, LID: lid}
	if at, ok := p.in.byPlace[end.At]; ok && at >= 0 && p.heard.Tables.Owner(i).Kind != proof.Undeclared {
		out.Host = p.in.ends[at].host
	}
	return out
}
