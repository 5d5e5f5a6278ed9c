package api_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/admission"
	"portcullis/api/admission/admissiontest"
	"portcullis/api/apitest"
	"portcullis/api/client"
	"portcullis/api/inventory"
	"portcullis/api/store"
	"portcullis/api/store/memory"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/attesttest"
	"portcullis/fabricsm/ib"
)

// attacked is a service that really decides, over HTTPS, and a host that lies to
// it.
type attacked struct {
	t       *testing.T
	a       *attesttest.Attempt
	svc     *admission.Service
	channel *client.Channel
}

// newAttacked assigns the attempt's host, as inventory expects it, to a cluster.
func newAttacked(t *testing.T, a *attesttest.Attempt, expected attest.Expected) *attacked {
	t.Helper()
	clock := func() time.Time { return a.Now }
	site := admissiontest.New(t, func(o *admission.Options) {
		o.Store, o.Now = store.New(memory.New(clock), ""), clock
		o.Policy, o.Locks = a.Policy, knownLocks(a.Expected.HCAs)
	})
	admissiontest.Trust(t, site.Store, expected.References...)
	site.Expect(expected.Host, inventoryOf(expected))
	svc := site.Service()
	server := apitest.Start(t, apitest.Real{Service: svc})
	x := &attacked{t: t, a: a, svc: svc}
	x.channel = openChannel(t, server)
	a.Channel = x.channel.Binding()
	return x
}

func openChannel(t *testing.T, server *apitest.Server) *client.Channel {
	t.Helper()
	ca, err := os.ReadFile(server.CAFile)
	fatal(t, err)
	c, err := client.New(client.Options{URL: server.URL, CA: ca})
	fatal(t, err)
	t.Cleanup(c.Close)
	ch, err := c.OpenChannel(t.Context())
	fatal(t, err)
	t.Cleanup(func() { fatal(t, ch.Close()) })
	return ch
}

func inventoryOf(e attest.Expected) []byte {
	var y strings.Builder
	fmt.Fprintf(&y, "hosts:\n- id: %s\n  ek_sha256: %s\n  class: %s\n  hcas:\n", e.Host, e.EKDigest, e.Class)
	place := 1
	for _, h := range e.HCAs {
		fmt.Fprintf(&y, "  - node_guid: %v\n    system_image_guid: %v\n    ports:\n", h.NodeGUID, h.SystemImageGUID)
		for _, p := range h.Ports {
			fmt.Fprintf(&y, "    - {port: %d, guid: %v, cable: 0x10/%d}\n", p.Num, p.GUID, place)
			place++
		}
	}
	return []byte(y.String())
}

// empty names the attacks that leave out what the shape of a request demands:
// they do not get as far as a decision.
var empty = map[string]bool{
	"second key not certified": true, "signature empty": true, "proof missing": true, "25 PCR values": true,
	"nine certificates": true, "AK empty": true,
}

// shapeless requires a request to be refused by its shape.
func shapeless(t *testing.T, err error) {
	t.Helper()
	if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Status != 422 || p.Code != v1.CodeInvalid {
		t.Errorf("the host was told %v, want 422 and %s", err, v1.CodeInvalid)
	}
}

// refused requires that, and a host that has attested nothing.
func (x *attacked) refused(err error, want attest.Reason) {
	x.t.Helper()
	if h := x.told(err, want); h.Status.Phase != v1.PhaseAwaiting || !h.Status.Attested.IsZero() || !h.Status.Sealed.IsZero() {
		x.t.Errorf("the host stands as %+v", h.Status)
	}
}

// told requires the uniform answer for the host, and the reason for operators.
func (x *attacked) told(err error, want attest.Reason) *v1.Host {
	x.t.Helper()
	p, ok := errors.AsType[*v1.Problem](err)
	if !ok || p.Status != 403 || p.Code != v1.CodeEvidenceRefused || strings.Contains(p.Detail, string(want)) {
		x.t.Errorf("the host was told %v, want the uniform refusal", err)
	}
	h, err := x.svc.Host(x.t.Context(), "compute-01")
	fatal(x.t, err)
	if d := h.Status.LastDenial; d == nil || d.Code != string(want) {
		x.t.Errorf("operators see %+v, want reason %s", d, want)
	}
	return h
}

// answer opens a session and sends evidence, wrong as the attack says.
func (x *attacked) answer(k *attesttest.Attack) error {
	x.t.Helper()
	var err error
	x.a.Session, err = x.channel.OpenSession(x.t.Context(), x.a.Request())
	fatal(x.t, err)
	k.Answer(x.a)
	_, err = x.channel.SubmitEvidence(x.t.Context(), x.a.Session.ID, x.a.Evidence)
	return err
}

// oneOfEach keeps the first of each kind in a short run, which is under the race detector: it makes the cryptography
// ten times as slow, and the goroutines of all are the same.
func oneOfEach[T any, K comparable](all []T, kind func(T) K) []T {
	if !testing.Short() {
		return all
	}
	seen := map[K]bool{}
	return slices.DeleteFunc(all, func(x T) bool {
		k := kind(x)
		old := seen[k]
		seen[k] = true
		return old
	})
}

// attackKind is what an attack changes, and how it is refused.
type attackKind struct {
	want                             attest.Reason
	shapeless                        bool
	host, quote, certify, sent, wire bool
}

func kindOfAttack(k attesttest.Attack) attackKind {
	return attackKind{k.Want, empty[k.Name], k.Host != nil, k.Quote != nil, k.Certify != nil, k.Sent != nil, k.Wire != nil}
}

type requestKind struct {
	want      attest.Reason
	shapeless bool
}

func kindOfRequest(k attesttest.RequestAttack) requestKind {
	return requestKind{k.Want, empty[k.Name]}
}

// TestAttacksOverTheAPI sends every attack on evidence that can be sent, and requests that only look like attacks.
func TestAttacksOverTheAPI(t *testing.T) {
	t.Parallel()
	attacks := append(attesttest.Attacks(), attesttest.BootAttacks()...)
	for _, a := range attesttest.Adapters() {
		attacks = append(attacks, a.Attack())
	}
	for _, b := range attesttest.TrustedBoots() {
		attacks = append(attacks, b.Attack)
	}
	attacks = slices.DeleteFunc(attacks, func(k attesttest.Attack) bool { return k.Service != nil })
	for _, k := range oneOfEach(attacks, kindOfAttack) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			a := attesttest.NewAttempt()
			if k.Host != nil {
				k.Host(a)
			}
			x := newAttacked(t, a, a.Expected)
			err := x.answer(&k)
			switch {
			case empty[k.Name]:
				shapeless(t, err)
				return
			case k.Want == "":
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			x.refused(err, k.Want)
			_, err = x.channel.SubmitEvidence(t.Context(), a.Session.ID, a.Evidence)
			if p, ok := errors.AsType[*v1.Problem](err); !ok || p.Code != v1.CodeEvidenceRefused {
				t.Errorf("a second time: %v, want the session used up", err)
			}
		})
	}
}

// TestRequestAttacksOverTheAPI sends every attack on the opening of a session
// that can be sent.
func TestRequestAttacksOverTheAPI(t *testing.T) {
	t.Parallel()
	requests := slices.DeleteFunc(attesttest.RequestAttacks(), func(k attesttest.RequestAttack) bool { return k.InProcess })
	for _, k := range oneOfEach(requests, kindOfRequest) {
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			r := attesttest.NewRequest()
			k.Alter(r)
			x := newAttacked(t, r.Attempt, r.Expected)
			_, err := x.channel.OpenSession(t.Context(), r.Req)
			if empty[k.Name] {
				shapeless(t, err)
				return
			}
			x.refused(err, k.Want)
		})
	}
}

// TestBootsOverTheAPI attests a host twice: the second boot is judged by the first.
func TestBootsOverTheAPI(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		sealed bool // the first time the host was handed over
		change func(b *attest.Boot)
		want   attest.Reason // "": accepted
	}{
		{"63: boot of a hand-over", true, func(*attest.Boot) {}, attest.ReasonReplayBoot},
		{"64: fewer resets", false, func(b *attest.Boot) { b.Reset-- }, attest.ReasonCleared},
		{"64: TPM cleared", true, func(b *attest.Boot) { *b = attest.Boot{Safe: true} }, attest.ReasonCleared},
		{"65: clock back", false, func(b *attest.Boot) { b.Clock-- }, attest.ReasonClock},
		{"65: clock back, not safe", false, func(b *attest.Boot) { b.Clock--; b.Safe = false }, ""},
		{"66: TPM restart", true, func(b *attest.Boot) { b.Restart++ }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := attesttest.NewAttempt()
			x := newAttacked(t, a, a.Expected)
			boot := a.Host.Boot
			var err error
			a.Session, err = x.channel.OpenSession(t.Context(), a.Request())
			fatal(t, err)
			(&attesttest.Attack{}).Answer(a)
			r, err := x.channel.SubmitEvidence(t.Context(), a.Session.ID, a.Evidence)
			fatal(t, err)
			if tt.sealed {
				seal, err := a.Host.Seal(a.Session, r.Seal, a.Channel)
				fatal(t, err)
				_, err = x.channel.SubmitSeal(t.Context(), a.Session.ID, seal)
				fatal(t, err)
			}
			a.Host.Reboot() // empties the registers
			tt.change(&boot)
			a.Host.Boot = boot
			err = x.answer(&attesttest.Attack{})
			if tt.want == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			x.told(err, tt.want)
		})
	}
}

// TestHonestHostOverTheAPI: the honest requests that the attacks differ from are accepted.
func TestHonestHostOverTheAPI(t *testing.T) {
	t.Parallel()
	a := attesttest.NewAttempt()
	x := newAttacked(t, a, a.Expected)
	var err error
	a.Session, err = x.channel.OpenSession(t.Context(), a.Request())
	fatal(t, err)
	(&attesttest.Attack{}).Answer(a)
	r, err := x.channel.SubmitEvidence(t.Context(), a.Session.ID, a.Evidence)
	fatal(t, err)
	seal, err := a.Host.Seal(a.Session, r.Seal, a.Channel)
	fatal(t, err)
	sealed, err := x.channel.SubmitSeal(t.Context(), a.Session.ID, seal)
	if err != nil || sealed.Phase != v1.PhaseVerified {
		t.Errorf("got %+v, %v", sealed, err)
	}
}

// knownLocks are those that evidence is compared with.
type knownLocks []attest.ExpectedHCA

func (k knownLocks) Expect(context.Context, store.Reader, *inventory.Host) (map[ib.GUID]attest.ExpectedLock, error) {
	locks := map[ib.GUID]attest.ExpectedLock{}
	for _, h := range k {
		locks[h.NodeGUID] = h.Lock
	}
	return locks, nil
}

func (knownLocks) Judge(*attest.Statement) *attest.Refusal                   { return nil }
func (knownLocks) Version() string                                           { return "" }
func (knownLocks) Look(context.Context, *store.Tx, *attest.Statement) error  { return nil }
func (knownLocks) Prove(context.Context, *store.Tx, *attest.Statement) error { return nil }
func (knownLocks) Draws() bool                                               { return false }
