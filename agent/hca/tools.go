package hca

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"portcullis/agent/hca/mst"
	"portcullis/agent/hca/register"
	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

// byTools reads an adapter with the vendor's tools: the output of mstflint, and its registers by mstreg. It returns an
// error only if the adapter cannot be opened.
func (d *Device) byTools(ctx context.Context, s *mst.Suite, function uint8) (blind error) {
	q, err := s.Query(ctx, string(d.PCI))
	if errors.Is(err, mst.ErrOpen) {
		return err
	}
	if err != nil {
		d.unreached(reasonOf(err), err.Error())
	}
	if registers, err := s.Registers(string(d.PCI)); err == nil {
		fw := &firmware{Device: d, access: registers, from: FromMSTReg, function: function}
		fw.read(ctx)
	} else if q != nil {
		d.unreached(ReasonNoAccess, err.Error())
	}
	if errors.Is(err, mst.ErrLocked) && len(d.MLOCK.Readings) == 0 {
		d.MLOCK.add(FromFlint, register.Locked)
	}
	if q != nil {
		d.fromQuery(q)
	}
	return nil
}

// fromQuery takes the facts from the output of "query full". Facts that are not in it stay as they are. It does not take
// the part number: the tool appends _Ax to it if the card reports a revision.
func (d *Device) fromQuery(q *mst.Query) {
	take(&d.PSID, q, mst.KeyPSID, text)
	take(&d.OrigPSID, q, mst.KeyOrigPSID, text)
	take(&d.Pending, q, mst.KeyVersion, ParseVersion)
	if _, other := q.First(mst.KeyRunning); other { // printed only where another image waits
		take(&d.Running, q, mst.KeyRunning, ParseVersion)
	} else {
		take(&d.Running, q, mst.KeyVersion, ParseVersion)
	}
	take(&d.LifeCycle, q, mst.KeyLifeCycle, lifeCycleText)
	take(&d.SecureBoot, q, mst.KeySecureBoot, enabled)
	take(&d.Encryption, q, mst.KeyEncryption, enabled)
	take(&d.SecurityVersion, q, mst.KeyImageSecVersion, number)
	take(&d.RollbackFloor, q, mst.KeyEFUSEVersion, number)
	if words, ok := q.Get(mst.KeyAttributes); ok {
		d.Attributes.add(FromFlint, words)
	}
	guid, mac := mst.KeyBaseGUID, mst.KeyBaseMAC
	if _, other := q.First(mst.KeyOrigBaseGUID); other { // printed only where it differs
		guid = mst.KeyOrigBaseGUID
	}
	if _, other := q.First(mst.KeyOrigBaseMAC); other {
		mac = mst.KeyOrigBaseMAC
	}
	take(&d.BaseGUID, q, guid, hexGUID)
	take(&d.BaseMAC, q, mac, hexMAC)
}

// take adds the tool's value of a key. Text that cannot be parsed counts as a contradiction if another source has the fact;
// otherwise the fact counts as not reported.
func take[T comparable](f *Fact[T], q *mst.Query, key string, parse func(string) (T, error)) {
	s, ok := q.First(key)
	if ok && key == mst.KeyLifeCycle {
		s, ok = q.Get(key) // two words
	}
	if !ok {
		return
	}
	v, err := parse(s)
	if err != nil {
		f.spoil(fmt.Sprintf("%s: %s: %v", FromFlint, key, err))
		return
	}
	f.add(FromFlint, v)
}

func text(s string) (string, error) { return s, nil }

func lifeCycleText(s string) (attest.LifeCycle, error) {
	switch s {
	case "PRODUCTION":
		return attest.LifeProduction, nil
	case "GA SECURED":
		return attest.LifeGASecured, nil
	case "GA NON SECURED":
		return attest.LifeGANonSecured, nil
	case "RMA":
		return attest.LifeRMA, nil
	case "PRE PRODUCTION":
		return attest.LifePreProduction, nil
	}
	return 0, fmt.Errorf("life cycle %q is not known", s)
}

func enabled(s string) (attest.Answer, error) {
	switch s {
	case "Enabled":
		return attest.Yes, nil
	case "Disabled":
		return attest.No, nil
	}
	return 0, fmt.Errorf("%q, want Enabled or Disabled", s)
}

func number(s string) (Number, error) {
	v, err := strconv.ParseUint(s, 10, 32)
	return Number(v), err
}

func hexGUID(s string) (ib.GUID, error) {
	if len(s) != 16 {
		return 0, fmt.Errorf("GUID %q, want 16 hexadecimal digits", s)
	}
	return ib.ParseGUID("0x" + s)
}

func hexMAC(s string) (MAC, error) {
	if len(s) != 12 || strings.Trim(s, "0123456789abcdef") != "" {
		return 0, fmt.Errorf("MAC address %q, want 12 hexadecimal digits", s)
	}
	v, err := strconv.ParseUint(s, 16, 48)
	return MAC(v), err
}
