package escrow

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/keys/keystest"
	"portcullis/fabricsm/vault"
)

// TestProve: a proof is verified by the store that the kit is of, and by no other one, and not when any part of it was altered.
func TestProve(t *testing.T) {
	kit, store := contents(t), contents(t)
	store.Made = kit.Made.Add(time.Hour)
	p, err := kit.Prove(passed(t, store.Digests()))
	if err != nil {
		t.Fatal(err)
	}
	p = passed(t, p)
	if err := p.Verify(store.Check); err != nil {
		t.Fatal(err)
	}
	if !p.Listed.Equal(store.Made) || !p.KitMade.Equal(kit.Made) || p.Keys != 5 || p.Devices != 2 || p.Fabric != "f" {
		t.Errorf("the proof is %+v", p)
	}
	other, err := vault.DrawCheckKey(rand.NewChaCha8([32]byte{9}))
	if err != nil {
		t.Fatal(err)
	}
	for name, check := range map[string]vault.CheckKey{"another store": other, "no check key": {}} {
		if err := p.Verify(check); !errors.Is(err, ErrForeignProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v := reflect.ValueOf(p).Elem()
	for i := range v.NumField() {
		altered := *p
		switch f := reflect.ValueOf(&altered).Elem().Field(i); value := f.Interface().(type) {
		case string:
			f.SetString(strings.Repeat("0", len(value)))
		case int:
			f.SetInt(int64(value) + 1)
		case time.Time:
			f.Set(reflect.ValueOf(value.Add(time.Second)))
		}
		if err := altered.Verify(store.Check); !errors.Is(err, ErrForeignProof) {
			t.Errorf("with another %s: %v", v.Type().Field(i).Name, err)
		}
	}
}

// TestProveNothing: no proof is made of a list that is not of this store as it was made, or that has keys which the kit lacks.
func TestProveNothing(t *testing.T) {
	kit := contents(t)
	for name, change := range map[string]func(*Digests){
		"a later date": func(d *Digests) { d.Made = d.Made.Add(time.Hour) },
		"fewer keys":   func(d *Digests) { d.Keys = d.Keys[1:] },
		"another key":  func(d *Digests) { d.Keys[0].Epoch++ },
		"another seal": func(d *Digests) { d.Seal = strings.Repeat("0", 64) },
	} {
		d := contents(t).Digests()
		change(d)
		if _, err := kit.Prove(d); !errors.Is(err, ErrAlteredList) {
			t.Errorf("%s: prove: %v", name, err)
		}
		if _, err := kit.Rehearse(d); !errors.Is(err, ErrAlteredList) {
			t.Errorf("%s: rehearse: %v", name, err)
		}
	}
	old := contents(t).Digests()
	old.Seal = ""
	if _, err := kit.Prove(old); !errors.Is(err, ErrUnsealedList) {
		t.Errorf("a list without a seal: %v", err)
	}
	if _, err := kit.Rehearse(old); err != nil {
		t.Errorf("a list without a seal is not compared: %v", err)
	}
	store := contents(t)
	store.Records[3].Current.Key = keys.New(keystest.Planted(77))
	if p, err := kit.Prove(store.Digests()); err == nil || !strings.Contains(err.Error(), "1 of 5 keys are not in the kit") {
		t.Errorf("a key is missing: %+v, %v", p, err)
	}
}

// passed returns what is read of the JSON text of a value.
func passed[T any](t *testing.T, v *T) *T {
	t.Helper()
	text, err := json.Marshal(v)
	out := new(T)
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}
