package lock

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"portcullis/agent/hca"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// Result is what was read back and proven.
type Result struct {
	Lock   attest.Lock
	Report *profile.Report // how settings stand to the profile
	// Firewall is what became of the probe of each port.
	Firewall map[ib.PortNum]attest.Firewall
	// Found is what settings were once the adapter was open, before any was written.
	Found []attest.Item
	// Opened is the epoch of the key that the adapter was locked with before; 0: it was open.
	Opened uint64
}

// Lock brings the adapter to the profile, locks it, and proves it. With an error
// the result has what is known so far, for the statement.
func (a *Adapter) Lock(ctx context.Context, o *Order) (*Result, error) {
	r := &Result{Firewall: map[ib.PortNum]attest.Firewall{}}
	if err := a.check(o); err != nil {
		return r, err
	}
	var err error
	// A broken-off run may have locked with the new key already.
	if r.Opened, err = a.Unlock(ctx, append([]Key{o.Lock}, o.Held...)); err != nil {
		r.Lock.MLOCK = a.mlock(ctx)
		return r, err
	}
	c := a.Settings(ctx, o.Profile)
	r.Found = itemsOf(c)
	c, applied, err := a.settle(ctx, o, c)
	r.Report = o.Profile.Judge(c, o.Method())
	r.Lock = lockOf(o, c, applied)
	r.Lock.MLOCK = a.mlock(ctx)
	if err != nil {
		return r, err
	}
	if err := a.settled(ctx, o); err != nil {
		return r, err
	}
	if err := a.probe(ctx, r.Firewall); err != nil {
		return r, err
	}
	if a.Look != nil {
		if err := a.Look(ctx); err != nil {
			return r, fail(CodeUnreadable, "", "adapter %s: %w", a.Name, err)
		}
	}
	// Once more, as late as it can be read: a management controller may have written
	// meanwhile.
	c = a.Settings(ctx, o.Profile)
	r.Report, r.Lock.Items = o.Profile.Judge(c, o.Method()), itemsOf(c)
	if !r.Report.Compliant() {
		return r, fail(CodeNotCompliant, "find out what else writes settings: a management controller, or another program", "adapter %s: changed while it was being locked: %s", a.Name, blocking(r.Report))
	}
	firewall, err := firewallOf(a, c)
	if err != nil {
		return r, err
	}
	if err := a.shut(ctx, o.Lock); err != nil {
		return r, err
	}
	err = a.prove(ctx, o.Lock, firewall)
	if r.Lock.MLOCK = a.mlock(ctx); err == nil {
		r.Lock.Epoch = o.Lock.Epoch
	}
	return r, err
}

// settle brings settings to the profile, with a reset where the values in force
// are not yet those of the next boot, and reads them back. A file is applied also
// where settings are as wanted: then it is known which file they are from. c is how
// they were. applied
// reports that settings were brought by this run.
func (a *Adapter) settle(ctx context.Context, o *Order, c profile.Card) (_ profile.Card, applied bool, err error) {
	report := o.Profile.Judge(c, o.Method())
	if o.File != nil || differs(report, profile.CodeDiffersNext) {
		if err := a.bring(ctx, o, c); err != nil {
			return c, false, err
		}
		applied = true
		c = a.Settings(ctx, o.Profile)
		report = o.Profile.Judge(c, o.Method())
	}
	if report.Compliant() {
		return c, applied, nil
	}
	if err := a.Reset(ctx); err != nil {
		return c, applied, a.noReset(err)
	}
	c = a.Settings(ctx, o.Profile)
	if report = o.Profile.Judge(c, o.Method()); !report.Compliant() {
		return c, applied, fail(CodeNotCompliant, "portcullis nvconfig profile shows what is wanted and why", "adapter %s: %s", a.Name, blocking(report))
	}
	return c, applied, nil
}

func (a *Adapter) noReset(err error) error {
	return fail(CodeReset, "power the host off and on, and run the agent again", "adapter %s: reset its firmware: %w", a.Name, err)
}

func differs(r *profile.Report, codes ...profile.Code) bool {
	for _, f := range r.Findings {
		for _, c := range codes {
			if f.Blocks && f.Code == c {
				return true
			}
		}
	}
	return false
}

// blocking names what keeps the adapter from complying.
func blocking(r *profile.Report) string {
	var all []string
	for _, f := range r.Findings {
		if f.Blocks {
			all = append(all, fmt.Sprintf("%s (%v): %s", f.Parameter, f.Address, f.Text))
		}
	}
	return strings.Join(all, "; ")
}

// probe sends from every port what the firewall must stop.
func (a *Adapter) probe(ctx context.Context, got map[ib.PortNum]attest.Firewall) error {
	const hint = "check that SM_DISABLE is in force (portcullis-agent hca), and reset the adapter"
	for _, p := range a.Ports {
		f, err := a.Probe(ctx, p)
		got[p] = f
		switch {
		case err != nil:
			return fail(CodeFirewall, hint, "adapter %s port %d: probe of the SMP firewall: %w", a.Name, p, err)
		case f != attest.FirewallBlocks:
			return fail(CodeFirewall, hint, "adapter %s port %d: a subnet management packet of the host went through (%v)", a.Name, p, f)
		}
	}
	return nil
}

// firewallOf finds the setting of the SMP firewall as it was read.
func firewallOf(a *Adapter, c profile.Card) (nvconfig.Item, error) {
	at, ok := nvconfig.LookUp("SM_DISABLE")
	for _, r := range c.Readings {
		if ok && at.Item.Class == r.Address.Class() && at.Item.Index == r.Address.Index() && r.Next.State == profile.Read {
			return r.Next.Item, nil
		}
	}
	return nvconfig.Item{}, fail(CodeUnreadable, "", "adapter %s: SM_DISABLE was not read", a.Name)
}

func (a *Adapter) mlock(ctx context.Context) attest.MLOCK {
	s, err := a.state(ctx)
	if err != nil {
		return attest.MLOCKUnknown
	}
	return hca.MLOCK(s)
}

// lockOf returns the lock in the form of statements: each item as it was read, and the file if this run applied it.
func lockOf(o *Order, c profile.Card, applied bool) attest.Lock {
	l := attest.Lock{Method: attest.LockWrites, Items: itemsOf(c)}
	if o.File == nil {
		return l
	}
	l.Method = attest.LockSignedFile
	if f, err := nvconfig.Parse(o.File); err == nil && applied {
		sum := sha256.Sum256(o.File)
		l.File = &attest.LockFile{SHA256: hex.EncodeToString(sum[:]), KeyID: f.Signature.Key.String()}
	}
	return l
}
