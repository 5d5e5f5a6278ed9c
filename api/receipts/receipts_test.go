package receipts

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"portcullis/api/audit"
	"portcullis/api/isolation"
	"portcullis/api/keyring/keyringtest"
	"portcullis/api/receipt"
	"portcullis/api/receipt/translog"
	"portcullis/api/refusal"
	"portcullis/api/store/storetest"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

// site is one store, a fabric of two tenants, and as many services as a test wants.
type site struct {
	*keyringtest.Site
	t      *testing.T
	asked  []string // of the examiner
	refuse error    // of the examiner
	leak   bool
	shared bool // h1 has a port of each tenant
}

// Examine implements Examiner.
func (s *site) Examine(_ context.Context, q v1.IsolationQuery, shared bool) (*Examined, error) {
	if s.refuse != nil {
		return nil, s.refuse
	}
	said := q.Tenant
	if shared {
		said += " shared"
	}
	s.asked = append(s.asked, said)
	port := func(tenant, host string, n ib.GUID) v1.IsolationPort {
		return v1.IsolationPort{Party: tenant, Host: host, GUID: n, Place: ib.Place{Switch: 0x99, Port: ib.PortNum(n)}, PKeys: []ib.PKey{0x8100 + ib.PKey(n)}, Found: true}
	}
	d := &isolation.Detail{
		Report: &v1.Isolation{
			Tenant: q.Tenant, Verdict: v1.Isolated, Parties: []v1.IsolationParty{{Name: "blue", Tenant: true, Declared: 1, Found: 1}, {Name: "red", Tenant: true, Declared: 1, Found: 1}},
			Bounds: v1.IsolationBounds{Begun: s.Clock.Add(-time.Minute), Ended: s.Clock.Add(-time.Second), Requests: 9, Assumptions: []string{"switches are honest"}},
		},
		Pairs: []v1.IsolationPair{{A: "blue", B: "red", Verdict: v1.Isolated, Held: v1.HeldByEach}},
		Ports: []v1.IsolationPort{port("blue", "h2", 2), port("red", "h1", 1)},
	}
	if s.shared {
		d.Ports[0].Host = "h1"
	}
	if q.Tenant != "" {
		d.Ports = slices.DeleteFunc(d.Ports, func(p v1.IsolationPort) bool { return p.Party != q.Tenant })
	}
	if s.leak {
		d.Report.Verdict, d.Pairs[0].Verdict, d.Pairs[0].Held = v1.Leaks, v1.Leaks, ""
	}
	return &Examined{Detail: d, Records: s.Clock.Add(-2 * time.Minute), Epochs: []receipt.Epoch{{Kind: "m_key", Epoch: 3}}}, nil
}

// Appraise implements Appraiser. Of h2 nothing is known.
func (s *site) Appraise(_ context.Context, hosts []string) (map[string]*result.Claims, error) {
	out := map[string]*result.Claims{}
	for _, h := range hosts {
		if h == "h2" {
			continue
		}
		out[h] = &result.Claims{
			Status: result.Affirming, Host: result.Host{AttestedAt: s.Clock.Add(-time.Hour).Unix()},
			Submods: map[string]result.Appraisal{
				result.Platform:           {Status: result.Affirming},
				result.AdapterLabel(0x71): {Adapter: &result.Adapter{NodeGUID: 0x71, Firmware: &result.Firmware{Version: "28.43.2026", Assurance: attest.G2}, Lock: &result.Lock{MLOCK: attest.MLOCKLocked, Epoch: 5}}},
			},
		}
	}
	return out, nil
}

func newSite(t *testing.T) *site { return &site{Site: keyringtest.NewSite(), t: t} }

func (s *site) service(edit ...func(*Options)) *Service {
	s.t.Helper()
	o := Options{Store: s.Store, Root: keyringtest.Root(s.t, "a"), Period: 30 * 24 * time.Hour, Log: storetest.Quiet(), Now: s.Now, Examiner: s, Hosts: s}
	for _, e := range edit {
		e(&o)
	}
	svc, err := New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return svc
}

// published returns the public keys as a relying party reads them.
func (s *site) published(svc *Service) []receipt.PublicKey {
	s.t.Helper()
	keys, err := svc.Keys(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var file bytes.Buffer
	for _, k := range keys.Keys {
		file.WriteString(k.PEM)
	}
	out, err := receipt.ParsePublicKeys(file.Bytes())
	if err != nil {
		s.t.Fatal(err)
	}
	for i, k := range out {
		if k.ID() != keys.Keys[i].ID {
			s.t.Errorf("key %d is published as %s, and is %s", i, keys.Keys[i].ID, k.ID())
		}
	}
	return out
}

func (s *site) issue(ctx context.Context, svc *Service, q v1.ReceiptRequest) (*receipt.Receipt, []byte) {
	s.t.Helper()
	data, err := svc.Issue(ctx, "olga", q)
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := receipt.Verify(data, s.published(svc), s.Clock)
	if err != nil {
		s.t.Fatalf("%s: %v", data, err)
	}
	return r, data
}

// of returns a context of a credential of tenants.
func of(ctx context.Context, tenants ...string) context.Context {
	return tenancy.Within(ctx, &tenancy.Scope{Tenants: tenants})
}

func code(err error) string {
	if e, ok := errors.AsType[*refusal.Error](err); ok && e.Hint != "" {
		return e.Code
	}
	return ""
}

func TestIssue(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	r, _ := s.issue(t.Context(), svc, v1.ReceiptRequest{})
	p := r.Predicate
	if p.Verdict != v1.Isolated || len(p.Pairs) != 1 || len(p.Members.Ports) != 2 || p.Keys.Epochs[0].Epoch != 3 || p.Reading.Counts.Requests != 9 {
		t.Errorf("receipt %+v", p)
	}
	if want := s.Clock.Add(DefaultAge - 2*time.Minute); !p.Until().Equal(want) {
		t.Errorf("counts until %v, want %v: a day after its oldest part", p.Until(), want)
	}
	first, second := &p.Attestations[0], &p.Attestations[1]
	if first.Host != "h1" || first.Status != result.Affirming || !first.Evidence.Equal(s.Clock.Add(-time.Hour)) || len(first.Adapters) != 1 ||
		first.Adapters[0] != (receipt.Adapter{GUID: 0x71, Firmware: "28.43.2026", Assurance: attest.G2, Lock: attest.MLOCKLocked, LockEpoch: 5}) {
		t.Errorf("attestation %+v", first)
	}
	if second.Host != "h2" || second.Status != result.None || !second.Evidence.IsZero() || len(second.Adapters) != 0 {
		t.Errorf("of a host that is not known it says %+v", second)
	}
	if r, _ := s.issue(t.Context(), svc, v1.ReceiptRequest{Tenant: "red", MaxAgeSeconds: 600}); r.Predicate.Until() != s.Clock.Add(8*time.Minute) || len(r.Predicate.Members.Ports) != 1 {
		t.Errorf("for ten minutes: %+v", r.Predicate)
	}
	s.leak = true
	if r, _ := s.issue(t.Context(), svc, v1.ReceiptRequest{}); r.Predicate.Verdict != v1.Leaks {
		t.Errorf("a leak: %+v", r.Predicate)
	}
	list, _, err := audit.Entries().List(t.Context(), s.Store, "")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, e := range list {
		if e.Value.Action == "receipt.issue" {
			said += e.Value.Actor + " " + e.Value.Object + " " + strings.Fields(e.Value.Detail)[1] + "\n"
		}
	}
	if want := "olga fabric isolated,\nolga tenant/red isolated,\nolga fabric leaks,\n"; said != want {
		t.Errorf("the audit log says\n%swant\n%s", said, want)
	}
}

// TestTenants: a credential of tenants gets receipts of these alone, from readings that are shared, and nothing of others is in them.
func TestTenants(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	ctx := of(t.Context(), "red", "green")
	r, data := s.issue(ctx, svc, v1.ReceiptRequest{Tenant: "red"})
	if p := r.Predicate; p.Verdict != v1.Isolated || len(p.Parties) != 2 || p.Parties[0].Name != receipt.Others || p.Reading.Counts != nil {
		t.Errorf("receipt %s: %+v", data, p)
	}
	_, refused := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: "blue"})
	_, unknown := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: "nobody"})
	if code(refused) != "tenant_unknown" || strings.ReplaceAll(refused.Error(), "blue", "nobody") != unknown.Error() {
		t.Errorf("of another tenant: %v; of none: %v; want the same", refused, unknown)
	}
	for tenant, want := range map[string]string{"": "receipt_tenant", "(others)": "name_invalid"} {
		if _, err := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: tenant}); code(err) != want {
			t.Errorf("tenant %q: %v, want %s", tenant, err, want)
		}
	}
	if got := strings.Join(s.asked, ", "); got != "red shared" {
		t.Errorf("the fabric was read for %q", got)
	}
}

// TestHost: a receipt about one host has nothing of other hosts; of a host of another tenant the answer is that of one that does not exist.
func TestHost(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	for _, ctx := range []context.Context{t.Context(), of(t.Context(), "red")} {
		for _, tenant := range []string{"", "red"} {
			if tenant == "" && tenancy.Confined(ctx) {
				continue
			}
			r, data := s.issue(ctx, svc, v1.ReceiptRequest{Tenant: tenant, Host: "h1"})
			if p := r.Predicate; p.Host != "h1" || p.Tenant != "red" || len(p.Members.Ports) != 1 || len(p.Attestations) != 1 || len(p.Pairs) != 1 {
				t.Errorf("receipt %s: %+v", data, p)
			}
		}
		other, err := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: "red", Host: "h2"})
		_, none := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: "red", Host: "h9"})
		if other != nil || code(err) != "receipt_host" || code(none) != "receipt_host" || strings.ReplaceAll(err.Error(), "h2", "h9") != none.Error() {
			t.Errorf("of another tenant: %v; of none: %v", err, none)
		}
	}
}

// TestHostOfTwoTenants: a host that has ports of two tenants is refused, until one of them is named.
func TestHostOfTwoTenants(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.shared = true
	svc := s.service()
	_, err := svc.Issue(t.Context(), "eve", v1.ReceiptRequest{Host: "h1"})
	if code(err) != "receipt_tenants" || !strings.Contains(err.Error(), "blue and red") {
		t.Errorf("without a tenant: %v", err)
	}
	if r, data := s.issue(t.Context(), svc, v1.ReceiptRequest{Host: "h1", Tenant: "red"}); r.Predicate.Tenant != "red" || len(r.Predicate.Members.Ports) != 1 {
		t.Errorf("of red: %s", data)
	}
}

// A tenant that asks without end has the fabric read no more often, and holds up no other one.
func TestTenantAsksTooOften(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	ctx := of(t.Context(), "red")
	issued, refused := 0, 0
	for range 100 {
		_, err := svc.Issue(ctx, "eve", v1.ReceiptRequest{Tenant: "red"})
		switch {
		case err == nil:
			issued++
		case refusal.IsKind(err, refusal.Limited) && code(err) == v1.CodeRateLimited:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if issued != tenantRate.Burst || refused != 100-issued || len(s.asked) != issued {
		t.Errorf("%d issued, %d refused, examined %d times", issued, refused, len(s.asked))
	}
	s.issue(of(t.Context(), "blue"), svc, v1.ReceiptRequest{Tenant: "blue"})
	s.issue(t.Context(), svc, v1.ReceiptRequest{Tenant: "red"}) // an auditor
	s.Clock = s.Clock.Add(20 * time.Second)
	s.issue(ctx, svc, v1.ReceiptRequest{Tenant: "red"})
}

func TestRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	for _, seconds := range []int64{-1, 59, int64(MaxAge/time.Second) + 1, 1 << 62} {
		if _, err := svc.Issue(t.Context(), "olga", v1.ReceiptRequest{MaxAgeSeconds: seconds}); code(err) != "receipt_age" {
			t.Errorf("%d seconds: %v", seconds, err)
		}
	}
	if _, err := s.service(func(o *Options) { o.Examiner = nil }).Issue(t.Context(), "olga", v1.ReceiptRequest{}); code(err) != v1.CodeSMElsewhere {
		t.Errorf("without a port: %v", err)
	}
	if err := svc.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := s.service(func(o *Options) { o.Root = keyringtest.Root(t, "b") })
	_, err := other.Issue(t.Context(), "olga", v1.ReceiptRequest{})
	if code(err) != "receipt_keys_locked" || code(other.Prepare(t.Context())) != "receipt_keys_locked" || len(s.asked) != 0 {
		t.Errorf("under another root: %v, and the fabric was read for %q", err, s.asked)
	}
	s.refuse = &refusal.Error{Code: "fabric_unread", Status: refusal.Unavailable, Detail: "it was not read", Hint: "ask again"}
	if _, err := svc.Issue(t.Context(), "olga", v1.ReceiptRequest{}); code(err) != "fabric_unread" {
		t.Errorf("nothing was read: %v", err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("made without a root")
	}
}

// TestRotation: keys that were fetched a week ago verify what is signed now, and what was signed last by a key counts for as long as
// it says.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	begun := s.Clock
	r, _ := s.issue(t.Context(), svc, v1.ReceiptRequest{})
	first := r.Key.ID()
	s.Clock = begun.Add(30*24*time.Hour - publishAhead)
	s.issue(t.Context(), svc, v1.ReceiptRequest{}) // makes the next key
	kept := s.published(svc)
	s.Clock = begun.Add(30*24*time.Hour - time.Second)
	_, last := s.issue(t.Context(), svc, v1.ReceiptRequest{MaxAgeSeconds: int64(MaxAge / time.Second)})
	s.Clock = begun.Add(30 * 24 * time.Hour)
	data, err := svc.Issue(t.Context(), "olga", v1.ReceiptRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := receipt.Verify(data, kept, s.Clock); err != nil || r.Key.ID() == first {
		t.Errorf("signed by %v, %v; want the next key, which was published a week ago", r, err)
	}
	s.Clock = begun.Add(30*24*time.Hour - time.Second + MaxAge - 2*time.Minute)
	if r, err := receipt.Verify(last, s.published(svc), s.Clock); err != nil || r.Key.ID() != first {
		t.Errorf("the last receipt of the first key: %v, %v", r, err)
	}
	keys, err := svc.Rotate(t.Context(), "olga", v1.ReceiptRotation{Reason: "stolen", Drop: true})
	if err != nil || len(keys.Keys) != 1 {
		t.Fatalf("given up: %+v, %v", keys, err)
	}
	if _, err := receipt.Verify(last, s.published(svc), s.Clock); !errors.Is(err, receipt.ErrKey) {
		t.Errorf("by a key that was given up: %v", err)
	}
}

func TestHalvesOfTwoKeys(t *testing.T) {
	t.Parallel()
	a, errA := makeKey(time.Time{}, time.Time{})
	b, errB := makeKey(time.Time{}, time.Time{})
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if k, err := openKey(a.Public, a.Secret); err != nil || !bytes.Equal(k.Public().(ed25519.PublicKey), a.Public) {
		t.Errorf("of one: %v", err)
	}
	for name, halves := range map[string][2][]byte{"of two": {b.Public, a.Secret}, "no public one": {nil, a.Secret}, "cut short": {a.Public, a.Secret[1:]}} {
		if _, err := openKey(halves[0], halves[1]); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// TestLogged: every receipt is in the log, with a proof that the same keys verify, also after the key has changed; the audit log says where.
func TestLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	if _, err := svc.Checkpoint(t.Context()); code(err) != "receipt_log_empty" {
		t.Errorf("before the first receipt: %v", err)
	}
	var all [][]byte
	for _, q := range []v1.ReceiptRequest{{}, {Tenant: "red"}, {Tenant: "blue"}} {
		_, data := s.issue(t.Context(), svc, q)
		all = append(all, data)
	}
	first, err := svc.Checkpoint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	before, err := translog.OpenHead(first, s.published(svc))
	if err != nil || before.Size != 3 {
		t.Fatalf("%+v, %v", before, err)
	}
	if _, err := svc.Rotate(t.Context(), "olga", v1.ReceiptRotation{Reason: "stolen", Drop: true}); err != nil {
		t.Fatal(err)
	}
	other := s.service() // another instance
	s.Clock = s.Clock.Add(time.Hour)
	_, data := s.issue(t.Context(), other, v1.ReceiptRequest{})
	for i, data := range append(all, data) {
		proof, err := svc.LogProof(t.Context(), translog.DigestOf(data).String())
		if err != nil {
			t.Fatal(err)
		}
		if at, err := translog.Verify(data, proof, s.published(svc)); err != nil || at.Index != int64(i) || at.Head.Size != 4 || at.Head.Origin != before.Origin {
			t.Errorf("receipt %d: %+v, %v", i, at, err)
		}
	}
	if c, err := svc.LogConsistency(t.Context(), 3, 4); err != nil || len(c.Hashes) == 0 {
		t.Errorf("%+v, %v", c, err)
	}
	if tile, err := svc.LogTile(t.Context(), 0, 0); err != nil || len(tile) != 4*32 {
		t.Errorf("%d bytes, %v", len(tile), err)
	}
	list, _, err := audit.Entries().List(t.Context(), s.Store, "")
	if err != nil {
		t.Fatal(err)
	}
	said, begun := "", 0
	for _, e := range list {
		if e.Value.Action == "receipt-log.begin" {
			begun++
		}
		if e.Value.Action == "receipt.issue" {
			said = e.Value.Detail
		}
	}
	if want := ", digest " + translog.DigestOf(data).String() + ", leaf 3"; begun != 1 || !strings.HasSuffix(said, want) {
		t.Errorf("%d logs were begun, and the last entry is %q, want %q", begun, said, want)
	}
}

// A receipt that neither log has is not given out.
func TestNotRecorded(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	svc := s.service()
	if err := svc.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if data, err := svc.Issue(ctx, "olga", v1.ReceiptRequest{}); err == nil || data != nil {
		t.Errorf("issued %s, %v", data, err)
	}
}
