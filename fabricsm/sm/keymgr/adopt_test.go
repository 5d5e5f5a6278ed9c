package keymgr_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/guard"
	"portcullis/fabricsm/sm"
)

// handOver lets another manager, which knows nothing, follow on one that assigned keys. It returns the keys that devices
// have, as the files of the first would have them.
func (e *env) handOver(seed byte) map[keys.Kind]map[ib.GUID]keys.Key {
	e.t.Helper()
	files := make(map[keys.Kind]map[ib.GUID]keys.Key)
	for n, k := range e.keysNow() {
		if files[n.kind] == nil {
			files[n.kind] = make(map[ib.GUID]keys.Key)
		}
		files[n.kind][n.guid] = keys.New(k.Reveal())
	}
	m, err := keys.DrawMaster(rand.NewChaCha8([32]byte{seed}))
	if err != nil {
		e.t.Fatal(err)
	}
	e.Crash()
	e.Restore(nil)
	clear(e.saved)
	e.SM.ClassKeys.Source = keys.Derived{Master: m}
	e.takeEvents()
	return files
}

// TestImport: devices that have keys of another manager get keys of their own, once the
// ones that files name were confirmed; without a violation on the way.
func TestImport(t *testing.T) {
	for what, device := range map[string]sim.Device{
		"two keys": sim.Modern(),
		"one key":  {CC: guard.Keyed, VS: guard.Keyed, N2N: guard.Keyed},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEnv(t, single(t, 4, 5), device, 1)
			e.start()
			e.settle(time.Minute)
			first := e.keysNow()
			e.SM.ClassKeys.Import = e.handOver(2)
			if err := e.Fabric.Reboot("h2"); err != nil { // it forgets its keys
				t.Fatal(err)
			}
			e.start()
			e.Run(time.Minute)
			e.settle(time.Minute)
			e.checkKeys()
			for n, k := range e.keysNow() {
				if k == first[n] || e.saved[n].Current.Origin != keys.OriginDerived {
					t.Errorf("%v of %v is the one that was there before: %v, origin %s", n.kind, n.guid, k == first[n], e.saved[n].Current.Origin)
				}
			}
			for _, p := range endPorts(e.List) {
				for _, kind := range kinds {
					if k, _ := e.Fabric.ClassKey(p.node, p.num, classes[kind]); k.Violations != 0 {
						t.Errorf("%s counted %d requests under a wrong %v", p.node, k.Violations, kind)
					}
				}
			}
			if got := eventsOf[*sm.ClassKeyProblem](e.told()); len(got) > 0 {
				t.Errorf("problems were told: %v", got)
			}
		})
	}
}

// TestImportKilled: a manager is killed after any step of an import. The next one needs the files no longer for confirmed
// keys, and has the same result.
func TestImportKilled(t *testing.T) {
	for n := 1; ; n++ {
		e := newEnv(t, single(t, 2, 3), sim.Modern(), uint64(n))
		e.start()
		e.settle(time.Minute)
		e.SM.ClassKeys.Import = e.handOver(2)
		e.start()
		from := e.steps
		e.Until(time.Minute, func() bool { return e.steps >= from+n || e.Settled() })
		done := e.Settled()
		e.start()
		e.settle(time.Minute)
		e.checkKeys()
		for name, r := range e.saved {
			if r.Current.Origin != keys.OriginDerived {
				t.Errorf("%v of %v: origin %s", name.kind, name.guid, r.Current.Origin)
			}
		}
		if t.Failed() {
			t.Fatalf("killed after step %d", n)
		}
		if done {
			return
		}
	}
}

// TestImportOfWrongKeys: a device that has another key than in the file keeps it, and is reported; the others are imported.
// No device is shown the key of another.
func TestImportOfWrongKeys(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	first := e.keysNow()
	guid := e.GUID("h2", 1)
	files := e.handOver(2)
	files[keys.VSKey][guid] = keys.New(0xbad)
	delete(files[keys.CCKey], guid)
	e.SM.ClassKeys.Import = files
	e.start()
	e.Run(time.Minute)
	for n, k := range e.keysNow() {
		kept := n.guid == guid && (n.kind == keys.VSKey || n.kind == keys.CCKey)
		if (k == first[n]) != kept {
			t.Errorf("%v of %v was kept: %v, want %v", n.kind, n.guid, k == first[n], kept)
		}
	}
	told := make(map[keys.Kind]bool)
	for _, p := range eventsOf[*sm.ClassKeyProblem](e.told()) {
		if told[p.Kind] = true; p.GUID != guid {
			t.Errorf("told of another device: %v", p)
		}
	}
	if !told[keys.VSKey] {
		t.Errorf("told of %v, want of the VS_Key", told)
	}
	if c := e.class(keys.CCKey); c.Absent+c.Failing != 1 {
		t.Errorf("CC_Keys: %+v, want one that is not ours", c)
	}
}

// TestImportToDisable: keys of another manager are taken off under the ones that files
// name.
func TestImportToDisable(t *testing.T) {
	e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
	e.start()
	e.settle(time.Minute)
	files := e.handOver(2)
	off := sm.ClassKeyConfig{Enable: sm.KeyDisable}
	e.SM.ClassKeys = sm.ClassKeysConfig{CC: off, VS: off, N2N: off, Import: files}
	e.start()
	e.Run(time.Minute)
	e.settle(time.Minute)
	for n, k := range e.keysNow() {
		if !k.IsZero() {
			t.Errorf("%v of %v is still there", n.kind, n.guid)
		}
	}
}
