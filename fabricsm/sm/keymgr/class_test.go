package keymgr_test

import (
	"fmt"
	"testing"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/sim"
	"portcullis/fabricsm/sim/netlist"
	"portcullis/fabricsm/sm"
	"portcullis/fabricsm/sm/keyevent"
)

// configOf returns the configuration of a class.
func (e *env) configOf(k keys.Kind) *sm.ClassKeyConfig {
	c := &e.SM.ClassKeys
	return map[keys.Kind]*sm.ClassKeyConfig{keys.CCKey: &c.CC, keys.VSKey: &c.VS, keys.N2NKey: &c.N2N}[k]
}

// only has one class alone be managed.
func (e *env) only(k keys.Kind, cfg sm.ClassKeyConfig) {
	c := &e.SM.ClassKeys
	c.CC, c.VS, c.N2N = sm.ClassKeyConfig{}, sm.ClassKeyConfig{}, sm.ClassKeyConfig{}
	*e.configOf(k) = cfg
}

// TestProtectBit: with the protect bit no host without the key gets an answer; without it any host can read the key, and
// still no host can write it.
func TestProtectBit(t *testing.T) {
	for _, kind := range kinds {
		for _, readable := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/readable=%v", kind, readable), func(t *testing.T) {
				e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
				e.only(kind, sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: 60, Readable: readable})
				e.start()
				e.settle(time.Minute)
				e.open("h1", 2)
				class, victim := classes[kind], e.Fabric.PortInfo("h2", 1).LID
				has, _ := e.Fabric.ClassKey("h2", 1, class)
				if has.Key.IsZero() || has.Protect == readable {
					t.Fatalf("the device has a key: %v, protected: %v", !has.Key.IsZero(), has.Protect)
				}
				got := e.attack("h1", victim, class, 0xbad)
				if (len(got) == 1) != readable {
					t.Fatalf("%d answers to a Get under a wrong key", len(got))
				}
				if readable {
					var info mad.N2NKeyInfo // the three have the same places
					k, _ := mad.LookupKeyClass(class)
					if err := mad.Decode(k.Attribute(&got[0].MAD), &info); err != nil || info.ManagerKey != has.Key {
						t.Errorf("the answer shows another key than the device has: %v", err)
					}
				}
				if got := e.request("h1", mad.MethodSet, victim, class, 0xbad); len(got) != 0 {
					t.Error("a Set under a wrong key was answered")
				}
				now, _ := e.Fabric.ClassKey("h2", 1, class)
				want := uint16(2)
				if readable {
					want = 1
				}
				if now.Key != has.Key || now.Violations != want {
					t.Errorf("the key was changed: %v; the device counted %d, want %d", now.Key != has.Key, now.Violations, want)
				}
				for _, other := range kinds {
					if k, _ := e.Fabric.ClassKey("h2", 1, classes[other]); other != kind && !k.Key.IsZero() {
						t.Errorf("it has a %v, which was not asked for", other)
					}
				}
			})
		}
	}
}

// TestLease: a violation that the manager hears of costs no protection. One that it
// does not hear of ends protection when the lease has run out, if there is one; the
// next manager restores it, and the key stays the same.
func TestLease(t *testing.T) {
	for _, kind := range kinds {
		for _, lease := range []uint16{0, 2, 60} {
			t.Run(fmt.Sprintf("%v/%ds", kind, lease), func(t *testing.T) {
				e := newEnv(t, single(t, 4, 5), sim.Modern(), 1)
				e.only(kind, sm.ClassKeyConfig{Enable: sm.KeyEnabled, Lease: lease})
				e.start()
				e.settle(time.Minute)
				e.open("h1", 2)
				class, victim := classes[kind], e.Fabric.PortInfo("h2", 1).LID
				has, _ := e.Fabric.ClassKey("h2", 1, class)
				e.attack("h1", victim, class, 0xbad)
				e.Run(2 * time.Minute)
				if now, _ := e.Fabric.ClassKey("h2", 1, class); !now.Protect || now.LeasePeriod != lease || now.Violations != 0 {
					t.Fatalf("after a violation that was answered: protected %v, lease %d, %d violations", now.Protect, now.LeasePeriod, now.Violations)
				}
				e.Crash()
				e.attack("h1", victim, class, 0xbad)
				e.Run(time.Duration(max(lease, 1)) * time.Second * 9 / 10)
				if now, _ := e.Fabric.ClassKey("h2", 1, class); !now.Protect {
					t.Error("protection lapsed before its time")
				}
				e.Run(time.Minute)
				if now, _ := e.Fabric.ClassKey("h2", 1, class); now.Protect != (lease == 0) || now.Key != has.Key {
					t.Errorf("a minute later: protected %v, the same key %v", now.Protect, now.Key == has.Key)
				}
				e.takeEvents()
				e.start()
				e.Run(5 * time.Second)
				e.settle(time.Minute)
				if now, _ := e.Fabric.ClassKey("h2", 1, class); !now.Protect || now.Key != has.Key || now.Violations != 0 {
					t.Errorf("under the next manager: protected %v, the same key %v, %d violations", now.Protect, now.Key == has.Key, now.Violations)
				}
				told := eventsOf[*sm.ClassKeyViolation](e.told())
				if len(told) != 1 || told[0].GUID != e.GUID("h2", 1) || told[0].Count != 1 {
					t.Errorf("told %v, want the one violation", told)
				}
			})
		}
	}
}

// TestOutstanding: there are never more requests of a class out than configured, and as many are out if there is enough
// work.
func TestOutstanding(t *testing.T) {
	l, err := netlist.FatTree2(netlist.Shape{Hosts: 20, Radix: 12})
	l = must(t, l, err)
	for _, kind := range kinds {
		for window, want := range map[int]int{1: 1, 3: 3, 0: len(endPorts(l)), 500: len(endPorts(l))} {
			t.Run(fmt.Sprintf("%v/%d", kind, window), func(t *testing.T) {
				e := newEnv(t, l, sim.Modern(), 1)
				e.rotating()
				e.configOf(kind).Window = window
				e.start()
				e.settle(time.Minute)
				e.Run(12 * time.Minute)
				if got := e.most[classes[kind]]; got != want {
					t.Errorf("%d requests were out at once, want %d", got, want)
				}
				e.checkKeys()
			})
		}
	}
}

// TestPeriodicUpdate: the key of each class that is given out changes once a period,
// those of others do not, and without a period none does. By default a period is a day. Here it is shorter: between two
// changes devices are only looked at, every ten minutes.
func TestPeriodicUpdate(t *testing.T) {
	for _, kind := range kinds {
		for _, tt := range []struct {
			name   string
			period time.Duration
			enable sm.KeyEnable
			want   keys.Epoch // of all keys after 130 minutes
		}{
			{"every two hours", 2 * time.Hour, sm.KeyEnabled, 2},
			{"every half hour", 30 * time.Minute, sm.KeyEnabled, 5},
			{"never", 0, sm.KeyEnabled, 1},
			{"disabled", 2 * time.Hour, sm.KeyDisable, 0},
			{"ignored", 2 * time.Hour, sm.KeyIgnore, 0},
		} {
			t.Run(fmt.Sprintf("%v/%s", kind, tt.name), func(t *testing.T) {
				e := newEnv(t, single(t, 3, 4), sim.Modern(), 1)
				for _, k := range kinds {
					*e.configOf(k) = sm.ClassKeyConfig{Enable: sm.KeyEnabled}
				}
				e.configOf(kind).Enable = tt.enable
				e.SM.ClassKeys.Rotation = keys.RotationConfig{Period: tt.period, Grace: 5 * time.Minute, Window: 3}
				e.start()
				e.settle(time.Minute)
				e.Run(130*time.Minute - e.Now())
				for _, p := range endPorts(e.List) {
					have, _ := e.Fabric.ClassKey(p.node, p.num, classes[kind])
					rec := e.saved[name{kind, p.guid}]
					if rec.Current.Epoch != tt.want || have.Key != rec.Current.Key.M() {
						t.Errorf("%s: epoch %d, want %d; the device has that key: %v", p.node, rec.Current.Epoch, tt.want, have.Key == rec.Current.Key.M())
					}
				}
				cycles := 0
				for _, r := range eventsOf[*keyevent.KeysRotated](e.told()) {
					if r.Kind == kind {
						cycles++
					}
				}
				if want := max(int(tt.want)-1, 0); cycles != want {
					t.Errorf("%d rotations were told, want %d", cycles, want)
				}
			})
		}
	}
}
