package attest

import (
	"portcullis/attest/eventlog"
	"portcullis/attest/reference"
)

// checkBoot requires the log of this boot. The log must be whole, and lead to the quoted value of each of the firmware's
// registers, also of those without events.
func (v *verifier) checkBoot() *Refusal {
	l, err := eventlog.Parse(v.ev.EventLog)
	if err != nil {
		return refuse(ReasonEventLog, "%v", err)
	}
	b := &reference.Boot{Log: l}
	for i, pcr := range v.ch.PCRs {
		if pcr != v.ch.AgentPCR {
			b.Quoted = append(b.Quoted, eventlog.Quoted{PCR: pcr, Value: eventlog.Digest(v.ev.PCRValues[i])})
		}
	}
	// The policy has these first: it quotes each, and in order.
	if err := l.Match(b.Quoted[:firmwarePCRs]); err != nil {
		return refuse(ReasonEventLog, "%v", err)
	}
	v.boot = b
	return nil
}

// checkReference requires a boot that matches reference values of the host's class. If none are in force, no host is
// trusted.
func (v *verifier) checkReference() *Refusal {
	m, err := reference.Judge(v.exp.References, v.exp.Class, v.now, v.boot)
	if err != nil {
		return refuse(ReasonReference, "%v", err)
	}
	v.facts.Reference = m.Set
	if v.anyBoot = m.Waiver; m.Waiver {
		v.facts.Waived = append(v.facts.Waived, "the boot is not compared with reference values (waiver "+m.Set+")")
	}
	return nil
}
