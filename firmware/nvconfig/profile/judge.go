package profile

import (
	"fmt"

	"portcullis/firmware/nvconfig"
)

// Method is how settings were brought to an adapter.
type Method uint8

// Methods.
const (
	// SignedFile: each setting must be protected from the host by its priority.
	SignedFile Method = iota + 1
	// PlainWrites: settings have the priority of the host. They are protected because the host may write none (MLOCK),
	// which is proven elsewhere.
	PlainWrites
)

func (m Method) String() string {
	switch m {
	case SignedFile:
		return "signed file"
	case PlainWrites:
		return "plain writes"
	default:
		return fmt.Sprintf("method %d", uint8(m))
	}
}

// Code names a kind of finding. Programs may rely on it.
type Code string

// Findings.
const (
	CodeNotSupported Code = "not-supported" // the adapter does not know the setting
	CodeUnread       Code = "unread"        // its value could not be read
	CodeMalformed    Code = "malformed"     // the answer is not one to the question
	CodeDiffersNow   Code = "differs-now"   // the value in force is another
	CodeDiffersNext  Code = "differs-next"  // the value after the next reset is another
	CodeOverridable  Code = "overridable"   // root on the host can change it
)

// Finding is one thing that is not as wanted, or worth a note.
type Finding struct {
	Parameter string           `json:"parameter"`
	Address   nvconfig.Address `json:"address"`
	Code      Code             `json:"code"`
	// Blocks says that the adapter does not comply because of it.
	Blocks bool   `json:"blocks"`
	Text   string `json:"text"`
}

// Value is what an adapter has of one parameter, as text; empty where nothing
// was read.
type Value struct {
	Parameter       string            `json:"parameter"`
	Address         nvconfig.Address  `json:"address"`
	Want            string            `json:"want,omitempty"`
	Default         string            `json:"default,omitempty"`
	Current         string            `json:"current,omitempty"`
	Next            string            `json:"next,omitempty"`
	Priority        nvconfig.Priority `json:"priority"` // of the value after the next reset
	OverrideEnabled bool              `json:"ovr_en"`
}

// Report is how an adapter stands to a profile. The order of both lists is that
// of the rules, then of addresses.
type Report struct {
	Profile  string    `json:"profile"`
	Version  uint32    `json:"version"`
	Values   []Value   `json:"values"`
	Findings []Finding `json:"findings"`
}

// Compliant reports that no finding blocks.
func (r *Report) Compliant() bool {
	for _, f := range r.Findings {
		if f.Blocks {
			return false
		}
	}
	return true
}

// Judge compares what was read of an adapter with the profile: the value in force
// and that after the next reset must both be the wanted one, and held as the
// method says.
func (p *Profile) Judge(c Card, m Method) *Report {
	report := &Report{Profile: p.Name, Version: p.Version}
	for _, r := range p.Rules {
		for _, a := range c.addresses(r.parameter().Item) {
			j := judge{rule: r, par: r.parameter(), want: r.want(c), address: a, method: m}
			reading, _ := c.reading(a)
			j.run(reading)
			report.Values = append(report.Values, j.value)
			report.Findings = append(report.Findings, j.findings...)
		}
	}
	return report
}

// judge looks at one parameter at one address.
type judge struct {
	rule     Rule
	par      nvconfig.Parameter
	want     string
	address  nvconfig.Address
	method   Method
	value    Value
	findings []Finding
}

func (j *judge) find(code Code, blocks bool, format string, args ...any) {
	j.findings = append(j.findings, Finding{
		Parameter: j.rule.Parameter, Address: j.address, Code: code,
		Blocks: blocks && j.rule.Need != Record, Text: fmt.Sprintf(format, args...),
	})
}

func (j *judge) run(r Reading) {
	j.value = Value{Parameter: j.rule.Parameter, Address: j.address, Want: j.want}
	if r.Support == NotSupported {
		if !j.rule.AbsentIsFine {
			j.find(CodeNotSupported, j.rule.Need == Required, "the adapter does not know it")
		}
		return
	}
	if r.Default.State == Read && r.Default.check(j.address, nvconfig.Default, j.par.Item) == nil {
		j.value.Default, _ = j.par.Field.Format(r.Default.Item.Data)
	}
	j.value.Current = j.look(r.Current, nvconfig.Current, CodeDiffersNow)
	j.value.Next = j.look(r.Next, nvconfig.Next, CodeDiffersNext)
	if j.value.Next != "" {
		j.value.Priority, j.value.OverrideEnabled = r.Next.Item.Priority, r.Next.Item.OverrideEnabled
	}
	j.lock(r)
}

// look judges one value, and returns it as text if it was read.
func (j *judge) look(a Answer, access nvconfig.Access, differs Code) string {
	switch a.State {
	case Read:
	case Absent:
		if !j.rule.AbsentIsFine {
			j.find(CodeUnread, true, "the adapter has no %v value", access)
		}
		return ""
	case Failed:
		j.find(CodeUnread, true, "the %v value could not be read: %s", access, a.Problem)
		return ""
	default:
		j.find(CodeUnread, true, "the %v value was not read", access)
		return ""
	}
	if err := a.check(j.address, access, j.par.Item); err != nil {
		j.find(CodeMalformed, true, "%v", err)
		return ""
	}
	got, err := j.par.Field.Format(a.Item.Data)
	if err != nil {
		j.find(CodeMalformed, true, "%v", err)
		return ""
	}
	if j.rule.Need != Record && (got != j.want || !j.counts(a.Item.Data)) {
		j.find(differs, true, "%s is %s, want %s", access, got, j.want)
	}
	return got
}

// counts reports whether the adapter respects the field: a few fields have a bit beside them that says so.
func (j *judge) counts(data []byte) bool {
	if j.par.Field.Valid == "" {
		return true
	}
	bit, ok := nvconfig.LookUp(j.par.Field.Valid)
	v, err := bit.Field.Uint(data)
	return ok && err == nil && v == 1
}

// lock checks which priorities may write over the value that was read.
func (j *judge) lock(r Reading) {
	if j.rule.Need == Record {
		return
	}
	for _, a := range []Answer{r.Current, r.Next} {
		if a.State == Read && !a.Item.Locked() {
			j.find(CodeOverridable, j.method != PlainWrites, "priority %v, ovr_en %d: root on the host can change it%s",
				a.Item.Priority, bit(a.Item.OverrideEnabled), map[bool]string{true: " unless the host may write no setting (MLOCK)"}[j.method == PlainWrites])
			return
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
