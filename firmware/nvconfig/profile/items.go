package profile

import (
	"crypto"
	"errors"
	"fmt"
	"slices"
	"time"

	"portcullis/firmware/nvconfig"
)

// Left is a parameter that is wanted and that no item brings to the adapter.
type Left struct {
	Parameter string `json:"parameter"`
	Why       string `json:"why"`
}

// Items returns the items that bring an adapter to the profile, in the order of the rules, and the parameters that they
// leave.
//
// An item is written whole. The parts that no rule sets come from the factory's value, because the stored value may be a
// tenant's. Where the factory's value could not be read, only completely known items are made.
//
// With SignedFile they are those of an OEM file; items of functions stand for all functions of all hosts. With PlainWrites
// they are for the registers, one for each address.
func (p *Profile) Items(c Card, m Method) ([]nvconfig.Item, []Left) {
	var items []nvconfig.Item
	var left []Left
	done := make(map[*nvconfig.Layout]bool)
	for _, r := range p.Rules {
		l := r.parameter().Item
		if r.Need == Record || done[l] {
			continue
		}
		done[l] = true
		for _, a := range c.addresses(l) {
			item, why := p.item(c, l, a)
			if why != "" {
				left = append(left, p.leave(l, why)...)
				break
			}
			items = append(items, m.dress(item))
			if m == SignedFile && l.Class == nvconfig.HostFunction {
				items[len(items)-1].Address = nvconfig.AllFunctionsItem(uint16(l.Index))
				break
			}
		}
	}
	return items, left
}

// leave names the wanted parameters of an item that is not made.
func (p *Profile) leave(l *nvconfig.Layout, why string) (out []Left) {
	for _, r := range p.Rules {
		if r.Need != Record && r.parameter().Item == l {
			out = append(out, Left{r.Parameter, why})
		}
	}
	return out
}

// item makes one item, or says why not.
func (p *Profile) item(c Card, l *nvconfig.Layout, a nvconfig.Address) (nvconfig.Item, string) {
	reading, asked := c.reading(a)
	if reading.Support == NotSupported {
		return nvconfig.Item{}, "the adapter does not know it"
	}
	data := make([]byte, l.Size)
	switch factory := reading.Default; {
	case asked && factory.State == Read && factory.check(a, nvconfig.Default, l) == nil:
		copy(data, factory.Item.Data)
	case !l.Whole:
		return nvconfig.Item{}, fmt.Sprintf("%s also has other settings, and their factory values are not known", l.Name)
	}
	for _, r := range p.Rules {
		f := r.parameter()
		if r.Need == Record || f.Item != l {
			continue
		}
		if err := set(f.Field, data, r.want(c)); err != nil {
			return nvconfig.Item{}, err.Error()
		}
	}
	return nvconfig.OEMItem(a, data), ""
}

// set writes a field, and that it counts.
func set(f nvconfig.Field, data []byte, value string) error {
	if f.Kind == nvconfig.Text && value == "" {
		return fmt.Errorf("%s: the PSID of the adapter is not known", f.Name)
	}
	if err := f.Set(data, value); err != nil || f.Valid == "" {
		return err
	}
	valid, _ := nvconfig.LookUp(f.Valid)
	return valid.Field.SetUint(data, 1)
}

// dress returns an item with the header that the method has.
func (m Method) dress(i nvconfig.Item) nvconfig.Item {
	if m == PlainWrites {
		i.Header = nvconfig.Header{OverrideEnabled: true, ReadEnabled: true, Writer: nvconfig.WriterOurs, Address: i.Address}
	}
	return i
}

// Order asks for a signed file.
type Order struct {
	// Card is the card that the file is for. Its readings decide which items are in it, and the rest of those items that
	// also hold other settings. Sign only by readings of a host whose boot was attested, or leave them out.
	Card Card
	// Version of the file; of those for one card each has a higher one.
	Version uint32
	Time    time.Time
	// Challenge, unless it is nil, binds the file to the card's challenge. It is not published which firmware respects that
	// in a file of settings.
	Challenge *nvconfig.Challenge
	Key       nvconfig.UUID
	Signer    crypto.Signer
}

// Unsigned returns the items of a whole file for one card: its identity, the devices it is for, and the settings. It fails
// where a required setting would be left.
func (p *Profile) Unsigned(o Order) ([]nvconfig.Item, []Left, error) {
	fail := func(err error) ([]nvconfig.Item, []Left, error) {
		return nil, nil, fmt.Errorf("NVCONFIG file of profile %s for %s: %w", p.Name, o.Card.name(), err)
	}
	if o.Version == 0 || o.Time.IsZero() {
		return fail(errors.New("version and time are missing: both must grow, so that an old file is not accepted as a new one"))
	}
	id, err := nvconfig.FileID{KeepSame: true, Version: o.Version, Time: o.Time}.Item()
	if err != nil {
		return fail(err)
	}
	whom, err := o.Card.applicability()
	if err != nil {
		return fail(err)
	}
	items := []nvconfig.Item{id, whom}
	if o.Challenge != nil {
		unique, err := nvconfig.ForChallenges(*o.Challenge)
		if err != nil {
			return fail(err)
		}
		items = append(items, unique)
	}
	settings, left := p.Items(o.Card, SignedFile)
	if i := slices.IndexFunc(left, func(l Left) bool { r, _ := p.Rule(l.Parameter); return r.Need == Required }); i >= 0 {
		return fail(fmt.Errorf("%s is required, but not in the file: %s", left[i].Parameter, left[i].Why))
	}
	return append(items, settings...), left, nil
}

// File makes the signed file for one card, and says what of the profile it leaves.
func (p *Profile) File(o Order) ([]byte, []Left, error) {
	items, left, err := p.Unsigned(o)
	if err != nil {
		return nil, nil, err
	}
	b, err := nvconfig.Sign(items, o.Signer, o.Key)
	if err != nil {
		return nil, nil, err
	}
	return b, left, nil
}

func (c Card) name() string {
	if c.hasDevice() {
		return fmt.Sprintf("device %x", c.Device)
	}
	return fmt.Sprintf("PSID %q", c.PSID)
}

func (c Card) hasDevice() bool { return c.Device != [nvconfig.DeviceIDSize]byte{} }

func (c Card) applicability() (nvconfig.Item, error) {
	if c.hasDevice() {
		return nvconfig.ForDevice(c.Device)
	}
	return nvconfig.ForPSID(c.PSID, "")
}
