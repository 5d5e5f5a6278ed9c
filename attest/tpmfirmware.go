package attest

import (
	"fmt"
	"regexp"
	"slices"

	"portcullis/attest/ek"
)

// TPMFirmware lists the firmware versions that are allowed for TPMs of a maker
// and model, as in their EK certificates. With any such list in the policy, a
// TPM without one is refused.
type TPMFirmware struct {
	Maker string   `yaml:"maker"` // id:54455354
	Model string   `yaml:"model"`
	Allow []string `yaml:"allow"` // firmwareVersion of a quote, 16 lower-case hex digits
}

var firmwarePattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (f TPMFirmware) check() error {
	for _, a := range f.Allow {
		if !firmwarePattern.MatchString(a) {
			return fmt.Errorf("TPM firmware %q of model %q: want 16 lower-case hexadecimal digits", clip(a), clip(f.Model))
		}
	}
	if f.Maker == "" || f.Model == "" || len(f.Allow) == 0 {
		return fmt.Errorf("TPM firmware of maker %q, model %q: want maker, model and at least one version", clip(f.Maker), clip(f.Model))
	}
	return nil
}

// checkTPM wants firmware of the TPM that the policy allows for its model.
func (v *verifier) checkTPM() *Refusal { return v.pol.checkTPM(v.ch.TPM, v.facts.TPMFirmware) }

func (p *Policy) checkTPM(tpm ek.Model, firmware string) *Refusal {
	if len(p.TPMFirmware) == 0 {
		return nil
	}
	for _, f := range p.TPMFirmware {
		if f.Maker == tpm.Maker && f.Model == tpm.Name {
			if slices.Contains(f.Allow, firmware) {
				return nil
			}
			return refuse(ReasonTPM, "TPM %v runs firmware %s, which the policy does not allow", tpm, firmware)
		}
	}
	return refuse(ReasonTPM, "TPM %v has no firmware list in the policy", tpm)
}
