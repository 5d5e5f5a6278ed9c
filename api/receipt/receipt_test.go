package receipt_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"portcullis/api/receipt"
	v1 "portcullis/api/v1"
	"portcullis/attest"
	"portcullis/attest/result"
	"portcullis/fabricsm/ib"
)

var (
	at     = time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC)
	signer = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
)

// facts are of two tenants with a host each, and hosts of no tenant.
func facts() receipt.Facts {
	port := func(tenant, host string, n ib.GUID, keys ...ib.PKey) v1.IsolationPort {
		return v1.IsolationPort{Party: tenant, Host: host, GUID: n, Place: ib.Place{Switch: 0x99, Port: ib.PortNum(n)}, PKeys: keys, Found: true}
	}
	judged := receipt.Judged{Dated: receipt.From(at.Add(-time.Hour), 24*time.Hour), Status: result.Affirming, Evidence: at.Add(-48 * time.Hour), Adapters: []receipt.Adapter{
		{GUID: 0x71, Firmware: "28.43.2026", Assurance: attest.G2, Lock: attest.MLOCKLocked, LockEpoch: 5},
	}}
	return receipt.Facts{
		Issued: at, MaxAge: time.Hour, Digest: strings.Repeat("ab", sha256.Size), ReadingMaxAge: 10 * time.Minute,
		Report: &v1.Isolation{
			Verdict: v1.Isolated,
			Parties: []v1.IsolationParty{
				{Name: "globex", Tenant: true, Declared: 1, Found: 1}, {Name: "acme", Tenant: true, Declared: 1, Found: 1}, {Name: "(no tenant)", Declared: 2, Found: 1},
			},
			Bounds: v1.IsolationBounds{Begun: at.Add(-time.Minute), Ended: at.Add(-30 * time.Second), Requests: 9, Devices: 5, Switches: 1, Ends: 3, Missing: 1, Assumptions: []string{"switches are honest"}},
		},
		Pairs: []v1.IsolationPair{
			{A: "acme", B: "globex", Verdict: v1.Isolated, Held: v1.HeldByEach},
			{A: "(no tenant)", B: "acme", Verdict: v1.Isolated, Held: v1.HeldBySwitches},
			{A: "(no tenant)", B: "globex", Verdict: v1.Isolated, Held: v1.HeldTogether},
		},
		Ports:    []v1.IsolationPort{port("globex", "h2", 2, 0x8202), port("acme", "h1", 1, 0x0001, 0x8101)},
		Members:  receipt.From(at.Add(-2*time.Minute), time.Hour),
		Topology: receipt.Topology{Dated: receipt.From(at.Add(-2*time.Minute), time.Hour), Revision: 4, Digest: "sha256:" + strings.Repeat("cd", sha256.Size)},
		Keys:     receipt.Keys{Dated: receipt.From(at.Add(-2*time.Minute), time.Hour), Epochs: []receipt.Epoch{{Kind: "m-key", Epoch: 3}}},

		Attestations: map[string]receipt.Judged{"h1": judged, "h2": judged, "h3": judged},
	}
}

func public(t testing.TB, key ed25519.PrivateKey) receipt.PublicKey {
	t.Helper()
	k, err := receipt.NewPublicKey(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func made(t testing.TB, f receipt.Facts) []byte {
	t.Helper()
	p, err := receipt.New(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := receipt.Sign(p, signer)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sealed signs any payload of any type.
func sealed(t testing.TB, kind, payload string) []byte {
	t.Helper()
	sig := ed25519.Sign(signer, fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload))
	return fmt.Appendf(nil, "{\"payload\":%q,\"payloadType\":%q,\"signatures\":[{\"keyid\":%q,\"sig\":%q}]}\n",
		base64.StdEncoding.EncodeToString([]byte(payload)), kind, public(t, signer).ID(), base64.StdEncoding.EncodeToString(sig))
}

// payload returns what an envelope holds.
func payload(t testing.TB, data []byte) string {
	t.Helper()
	var e struct {
		Payload []byte `json:"payload"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	return string(e.Payload)
}

func TestVerify(t *testing.T) {
	t.Parallel()
	data, keys := made(t, facts()), []receipt.PublicKey{public(t, signer)}
	r, err := receipt.Verify(data, keys, at.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	p := r.Predicate
	if p.Verdict != v1.Isolated || len(p.Pairs) != 3 || p.Pairs[0].Held != v1.HeldBySwitches || r.Key.ID() != keys[0].ID() {
		t.Errorf("receipt: %+v", p)
	}
	if len(p.Attestations) != 2 || p.Attestations[0].Host != "h1" || p.Attestations[0].Status != result.Affirming {
		t.Errorf("attestation results of %+v, want of the two hosts that have members", p.Attestations)
	}
	if want := at.Add(9 * time.Minute); !p.Until().Equal(want) {
		t.Errorf("counts until %v, want %v: the age of a reading counts from its begin", p.Until(), want)
	}
	if want := `"place":"0x0000000000000099/1","pkeys":["0x0001","0x8101"]`; !strings.Contains(payload(t, data), want) {
		t.Errorf("payload lacks %s: %s", want, payload(t, data))
	}
	other := public(t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	for _, keys := range [][]receipt.PublicKey{nil, {other}, {{}}} {
		if _, err := receipt.Verify(data, keys, at); !errors.Is(err, receipt.ErrKey) {
			t.Errorf("with keys %v: %v, want ErrKey", keys, err)
		}
	}
}

// TestEachByte: no byte can be altered, left out or added, at any place.
func TestEachByte(t *testing.T) {
	t.Parallel()
	data, keys := made(t, facts()), []receipt.PublicKey{public(t, signer)}
	for i := range data {
		for _, change := range []byte{0x01, 0x20, 0x80, data[i] ^ ' ', data[i] ^ '\t'} {
			changed := bytes.Clone(data)
			if changed[i] ^= change; change == 0 {
				continue
			}
			if _, err := receipt.Verify(changed, keys, at); err == nil {
				t.Fatalf("byte %d altered from %q to %q: accepted", i, data[i], changed[i])
			}
		}
		if _, err := receipt.Verify(data[:i], keys, at); err == nil {
			t.Fatalf("cut after %d bytes: accepted", i)
		}
	}
	for _, more := range []string{"\n", " ", "{}", "\x00", string(data)} {
		for _, longer := range []string{string(data) + more, more + string(data)} {
			if _, err := receipt.Verify([]byte(longer), keys, at); !errors.Is(err, receipt.ErrForm) {
				t.Errorf("with %.9q more: %v, want ErrForm", more, err)
			}
		}
	}
}

// TestSignedNonsense: what the trusted key signed is refused all the same if it is another kind, lacks something, or
// contradicts itself.
func TestSignedNonsense(t *testing.T) {
	t.Parallel()
	const kind = receipt.PayloadType
	keys := []receipt.PublicKey{public(t, signer)}
	good := payload(t, made(t, facts()))
	if _, err := receipt.Verify(sealed(t, kind, good), keys, at); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	if _, err := receipt.Verify(sealed(t, "application/json", good), keys, at); !errors.Is(err, receipt.ErrForm) {
		t.Errorf("a payload of another type: %v", err)
	}
	pair := `{"a":"acme","b":"globex","verdict":"isolated","held":"each"}`
	for name, change := range map[string][2]string{
		"another statement":                 {receipt.StatementType, "https://in-toto.io/Statement/v2"},
		"another predicate":                 {receipt.PredicateType, "https://slsa.dev/provenance/v1"},
		"another subject":                   {`"sha256":"ab`, `"sha256":"cd`},
		"a key twice":                       {`"verdict":"isolated","reading"`, `"verdict":"leaks","verdict":"isolated","reading"`},
		"a key in another case":             {`"predicateType"`, `"predicatetype"`},
		"an unknown key":                    {`"verdict":"isolated","reading"`, `"verdict":"isolated","more":1,"reading"`},
		"white space":                       {`"pairs":`, `"pairs": `},
		"no verdict":                        {`"verdict":"isolated","reading"`, `"reading"`},
		"a pair that leaks":                 {pair, `{"a":"acme","b":"globex","verdict":"leaks"}`},
		"a pair that is unknown":            {pair, `{"a":"acme","b":"globex","verdict":"unknown"}`},
		"a pair of a new verdict":           {pair, `{"a":"acme","b":"globex","verdict":"fine","held":"each"}`},
		"a pair without a verdict":          {pair, `{"a":"acme","b":"globex","verdict":"","held":"each"}`},
		"a pair missing":                    {`,` + pair, ``},
		"a pair twice":                      {pair, pair + `,` + pair},
		"a pair of itself":                  {pair, `{"a":"acme","b":"acme","verdict":"isolated","held":"each"}`},
		"a pair held by nothing":            {pair, `{"a":"acme","b":"globex","verdict":"isolated"}`},
		"no pairs":                          {`"pairs":[`, `"pairs":null,"x":[`},
		"a port not found":                  {`"name":"acme","tenant":true,"declared":1,"found":1`, `"name":"acme","tenant":true,"declared":2,"found":1`},
		"a tenant that is none":             {`"name":"acme","tenant":true`, `"name":"acme","tenant":false`},
		"of a tenant that is none":          {`"verdict":"isolated","reading"`, `"tenant":"umbrella","verdict":"isolated","reading"`},
		"no members of acme":                {`"party":"acme"`, `"party":"umbrella"`},
		"a host not attested":               {`"host":"h1","status"`, `"host":"h0","status"`},
		"no assumptions":                    {`["switches are honest"]`, `[]`},
		"a count below 0":                   {`"unread":0`, `"unread":-1`},
		"an end before the begin":           {`"ended":"2026-11-29T01:59:30Z"`, `"ended":"2026-11-29T01:58:30Z"`},
		"a reading after the issue":         {`"at":"2026-11-29T01:59:00Z"`, `"at":"2026-11-29T02:00:01Z"`},
		"another zone":                      {`"ended":"2026-11-29T01:59:30Z"`, `"ended":"2026-11-29T02:59:30+01:00"`},
		"parts of a second":                 {`"ended":"2026-11-29T01:59:30Z"`, `"ended":"2026-11-29T01:59:30.5Z"`},
		"an open end of time":               {`"max_age_seconds":600`, `"max_age_seconds":9223372036854775807`},
		"an affirmed host without evidence": {`"evidence":"2026-11-27T02:00:00Z",`, ``},
		"evidence after the result":         {`"evidence":"2026-11-27T02:00:00Z"`, `"evidence":"2026-11-29T01:00:01Z"`},
		"an adapter without a GUID":         {`"guid":"0x0000000000000071","firmware"`, `"guid":"0x0000000000000000","firmware"`},
		"a revision without digest":         {`"revision":4,"digest":"sha256:` + strings.Repeat("cd", 32) + `"`, `"revision":4`},
		"no key epoch":                      {`[{"kind":"m-key","epoch":3}]`, `[]`},
		"no digest":                         {`"digest":"` + strings.Repeat("ab", 32), `"digest":"`},
	} {
		changed := strings.Replace(good, change[0], change[1], 1)
		if changed == good {
			t.Fatalf("%s: the payload has no %s", name, change[0])
		}
		if _, err := receipt.Verify(sealed(t, kind, changed), keys, at); !errors.Is(err, receipt.ErrForm) {
			t.Errorf("%s: %v, want ErrForm", name, err)
		}
	}
	for _, data := range []string{"", "null", "{}", "[]", good + good, good + " ", strings.Repeat("[", 99)} {
		if _, err := receipt.Verify(sealed(t, kind, data), keys, at); !errors.Is(err, receipt.ErrForm) {
			t.Errorf("payload %.20q: %v, want ErrForm", data, err)
		}
	}
}

// TestNoBound: each fact needs its time and its bound.
func TestNoBound(t *testing.T) {
	t.Parallel()
	keys := []receipt.PublicKey{public(t, signer)}
	good := payload(t, made(t, facts()))
	parts := strings.Split(good, `"max_age_seconds":`)
	if len(parts) != 8 { // statement, reading, members, topology, keys, two attestation results
		t.Fatalf("%d bounds, want 7: %s", len(parts)-1, good)
	}
	for i := 1; i < len(parts); i++ {
		_, rest, _ := strings.Cut(parts[i], parts[i][:strings.IndexAny(parts[i], ",}")])
		before := strings.Join(parts[:i], `"max_age_seconds":`)
		after := strings.Join(append([]string{rest}, parts[i+1:]...), `"max_age_seconds":`)
		for _, changed := range []string{before + `"max_age_seconds":0` + after, before + `"max_age_seconds":-1` + after, strings.TrimSuffix(before, ",") + after} {
			if _, err := receipt.Verify(sealed(t, receipt.PayloadType, changed), keys, at); !errors.Is(err, receipt.ErrForm) {
				t.Errorf("without bound %d: %v, want ErrForm", i, err)
			}
		}
	}
	for name, spoil := range map[string]func(f *receipt.Facts){
		"statement":    func(f *receipt.Facts) { f.MaxAge = 0 },
		"reading":      func(f *receipt.Facts) { f.ReadingMaxAge = time.Millisecond },
		"members":      func(f *receipt.Facts) { f.Members = receipt.Dated{} },
		"topology":     func(f *receipt.Facts) { f.Topology.Dated = receipt.Dated{} },
		"keys":         func(f *receipt.Facts) { f.Keys.At = time.Time{} },
		"attestations": func(f *receipt.Facts) { f.Attestations["h1"] = receipt.Judged{} },
		"no result":    func(f *receipt.Facts) { delete(f.Attestations, "h2") },
		"no report":    func(f *receipt.Facts) { f.Report = nil },
	} {
		f := facts()
		spoil(&f)
		if p, err := receipt.New(f); err == nil {
			t.Errorf("%s: made %+v", name, p)
		}
	}
}

// TestOld: a receipt counts as long as each fact in it does.
func TestOld(t *testing.T) {
	t.Parallel()
	keys := []receipt.PublicKey{public(t, signer)}
	short := receipt.From(at, 30*time.Second)
	for name, test := range map[string]struct {
		set   func(f *receipt.Facts)
		until time.Time
	}{
		"statement":   {func(f *receipt.Facts) { f.MaxAge = 30 * time.Second }, at.Add(30 * time.Second)},
		"reading":     {func(*receipt.Facts) {}, at.Add(9 * time.Minute)},
		"members":     {func(f *receipt.Facts) { f.Members = short }, at.Add(30 * time.Second)},
		"topology":    {func(f *receipt.Facts) { f.Topology.Dated = short }, at.Add(30 * time.Second)},
		"keys":        {func(f *receipt.Facts) { f.Keys.Dated = short }, at.Add(30 * time.Second)},
		"attestation": {func(f *receipt.Facts) { f.Attestations["h2"] = receipt.Judged{Dated: short} }, at.Add(30 * time.Second)},
	} {
		f := facts()
		test.set(&f)
		data := made(t, f)
		for now, want := range map[time.Time]error{
			test.until: nil, test.until.Add(time.Nanosecond): receipt.ErrStale, at.Add(-time.Minute): nil, at.Add(-time.Minute - time.Second): receipt.ErrStale, {}: receipt.ErrStale,
		} {
			if _, err := receipt.Verify(data, keys, now); !errors.Is(err, want) {
				t.Errorf("%s: at %v: %v, want %v", name, now, err, want)
			}
		}
	}
}

// TestVerdicts: the verdict is that of the worst pair.
func TestVerdicts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verdict string
		found   int
		want    string
	}{{v1.Leaks, 1, v1.Leaks}, {v1.IsolationUnknown, 1, v1.IsolationUnknown}, {v1.IsolationUnknown, 0, v1.IsolationUnknown}} {
		for _, claimed := range []string{v1.Isolated, v1.Leaks, v1.IsolationUnknown} {
			f := facts()
			f.Report.Verdict = claimed
			f.Report.Parties[0].Found, f.Ports[0].Found = test.found, test.found == 1
			for _, i := range []int{0, 2} { // of globex
				f.Pairs[i].Verdict, f.Pairs[i].Held = test.verdict, ""
			}
			p, err := receipt.New(f)
			if (err == nil) != (claimed == test.want) {
				t.Errorf("%+v, claimed %q: %v", test, claimed, err)
			}
			if err != nil {
				continue
			}
			data, err := receipt.Sign(p, signer)
			if err != nil {
				t.Fatal(err)
			}
			if r, err := receipt.Verify(data, []receipt.PublicKey{public(t, signer)}, at); err != nil || r.Predicate.Verdict != test.want {
				t.Errorf("%+v: %v", test, err)
			}
		}
	}
	f := facts()
	f.Report.Parties, f.Pairs, f.Ports, f.Report.Verdict = nil, nil, nil, v1.Isolated
	if _, err := receipt.New(f); err == nil {
		t.Error("nothing is isolated, and that is called isolated")
	}
}

// TestNarrow: a receipt about one host has the pairs of its tenant, and nothing of other hosts.
func TestNarrow(t *testing.T) {
	t.Parallel()
	keys := []receipt.PublicKey{public(t, signer)}
	narrow := func(host string, edit func(f *receipt.Facts)) (*receipt.Predicate, error) {
		f := facts()
		f.Report.Parties[1].Declared, f.Report.Parties[1].Found = 2, 2
		f.Ports = append(f.Ports, v1.IsolationPort{Party: "acme", Host: "h3", GUID: 3, Place: ib.Place{Switch: 0x99, Port: 3}, Found: true})
		edit(&f)
		p, err := receipt.New(f)
		if err != nil {
			t.Fatal(err)
		}
		return p, p.Narrow(host)
	}
	for host, tenant := range map[string]string{"h1": "acme", "h2": "globex", "h3": "acme"} {
		p, err := narrow(host, func(*receipt.Facts) {})
		if err != nil {
			t.Fatal(err)
		}
		data, err := receipt.Sign(p, signer)
		if err != nil {
			t.Fatal(err)
		}
		r, err := receipt.Verify(data, keys, at)
		if err != nil {
			t.Fatal(err)
		}
		if p := r.Predicate; p.Host != host || p.Tenant != tenant || p.Verdict != v1.Isolated || len(p.Pairs) != 2 || len(p.Members.Ports) != 1 ||
			len(p.Attestations) != 1 || p.Attestations[0].Host != host {
			t.Errorf("host %s: %+v", host, p)
		}
		for from, to := range map[string]string{
			`"host":"` + host + `","verdict"`: `"verdict"`, `"tenant":"` + tenant + `",`: "", `"host":"` + host + `","verdict":`: `"host":"h9","verdict":`,
		} {
			text := strings.Replace(payload(t, data), from, to, 1)
			_, err := receipt.Verify(sealed(t, receipt.PayloadType, text), keys, at)
			// The one host of a tenant is also all of its hosts.
			if sole := host == "h2" && strings.HasPrefix(from, `"host"`) && !strings.Contains(to, "h9"); !errors.Is(err, receipt.ErrForm) && !sole {
				t.Errorf("host %s, %q in place of %q: %v", host, to, from, err)
			}
		}
	}
	for _, host := range []string{"", "h9", "acme"} {
		if _, err := narrow(host, func(*receipt.Facts) {}); !errors.Is(err, receipt.ErrNoHost) {
			t.Errorf("host %q: %v", host, err)
		}
	}
	_, err := narrow("h1", func(f *receipt.Facts) { f.Ports[0].Host = "h1" })
	if !errors.Is(err, receipt.ErrTenants) || !strings.Contains(err.Error(), "acme") || !strings.Contains(err.Error(), "globex") {
		t.Errorf("ports of two tenants: %v", err)
	}
	// A leak of another tenant is not of this host's, and a missing port of another host of its tenant keeps it unproven.
	p, err := narrow("h1", func(f *receipt.Facts) {
		f.Report.Verdict, f.Pairs[2].Verdict, f.Pairs[2].Held = v1.Leaks, v1.Leaks, ""
	})
	if err != nil || p.Verdict != v1.Isolated {
		t.Errorf("another tenant leaks: %v, %v", p.Verdict, err)
	}
	p, err = narrow("h1", func(f *receipt.Facts) {
		f.Report.Verdict, f.Report.Parties[1].Found, f.Ports[2].Found = v1.IsolationUnknown, 1, false
		for i := range 2 {
			f.Pairs[i].Verdict, f.Pairs[i].Held = v1.IsolationUnknown, ""
		}
	})
	if err != nil || p.Verdict != v1.IsolationUnknown {
		t.Errorf("a port of its tenant is missing: %v, %v", p.Verdict, err)
	}
}

// TestConfine: a tenant's own receipt is as strict as one that names the others, and says nothing of them.
func TestConfine(t *testing.T) {
	t.Parallel()
	keys := []receipt.PublicKey{public(t, signer)}
	own := func(edit func(f *receipt.Facts)) (string, error) {
		f := facts()
		f.Report.Tenant = "acme"
		f.Pairs, f.Ports = f.Pairs[:2], f.Ports[1:]
		edit(&f)
		p, err := receipt.New(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Confine(); err != nil {
			return "", err
		}
		data, err := receipt.Sign(p, signer)
		if err != nil {
			return "", err
		}
		r, err := receipt.Verify(data, keys, at)
		if err != nil || len(r.Predicate.Parties) != 2 || len(r.Predicate.Pairs) != 1 {
			t.Fatalf("receipt %+v: %v", r, err)
		}
		text := payload(t, data)
		for _, hidden := range []string{"globex", "h2", "no tenant", "requests", "0x8202"} {
			if strings.Contains(text, hidden) {
				t.Errorf("the receipt of acme has %s: %s", hidden, text)
			}
		}
		return r.Predicate.Verdict + " " + r.Predicate.Pairs[0].Held, nil
	}
	for _, test := range []struct{ first, second, want string }{
		{v1.HeldByEach, v1.HeldByEach, "isolated each"},
		{v1.HeldByEach, v1.HeldBySwitches, "isolated switches"},
		{v1.HeldByAdapters, v1.HeldByEach, "isolated adapters"},
		{v1.HeldBySwitches, v1.HeldByAdapters, "isolated together"},
		{v1.HeldTogether, v1.HeldBySwitches, "isolated together"},
	} {
		got, err := own(func(f *receipt.Facts) { f.Pairs[0].Held, f.Pairs[1].Held = test.first, test.second })
		if got != test.want || err != nil {
			t.Errorf("held by %s and %s: %s, %v, want %s", test.first, test.second, got, err, test.want)
		}
	}
	for verdicts, want := range map[[2]string]string{
		{v1.Leaks, v1.IsolationUnknown}: "leaks ", {v1.IsolationUnknown, v1.Leaks}: "leaks ", {v1.Isolated, v1.IsolationUnknown}: "unknown ", {v1.Leaks, v1.Isolated}: "leaks ",
	} {
		got, err := own(func(f *receipt.Facts) {
			f.Report.Verdict = strings.TrimSpace(want)
			for i, v := range verdicts {
				if f.Pairs[i].Verdict = v; v != v1.Isolated {
					f.Pairs[i].Held = ""
				}
			}
		})
		if got != want || err != nil {
			t.Errorf("pairs %v: %s, %v, want %s", verdicts, got, err, want)
		}
	}
	p, err := receipt.New(facts())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Confine(); err == nil {
		t.Error("a receipt about all tenants was confined to one")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	der, err := x509.MarshalPKIXPublicKey(signer.Public())
	if err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	sum := sha256.Sum256(der)
	other, err := public(t, ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))).PEM()
	if err != nil {
		t.Fatal(err)
	}
	for count, file := range map[int]string{1: string(text), 2: string(text) + "\n" + string(other) + "\n"} {
		list, err := receipt.ParsePublicKeys([]byte(file))
		if err != nil || len(list) != count || list[0].ID() != hex.EncodeToString(sum[:]) {
			t.Errorf("keys %v: %v", list, err)
		}
	}
	for _, bad := range []string{"", "x", string(text) + "x", strings.Repeat(string(text), 200), strings.ReplaceAll(string(text), "PUBLIC", "PRIVATE"), string(text[:60])} {
		if _, err := receipt.ParsePublicKeys([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a key", bad)
		}
	}
	p, err := receipt.New(facts())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := receipt.Sign(p, broken{signer}); !errors.Is(err, receipt.ErrKey) {
		t.Errorf("a signer that signs something else: %v", err)
	}
}

// broken is a token that returns wrong signatures.
type broken struct{ ed25519.PrivateKey }

func (b broken) Sign(_ io.Reader, message []byte, o crypto.SignerOpts) ([]byte, error) {
	return b.PrivateKey.Sign(nil, append(message, 0), o)
}

// FuzzVerify: whatever the trusted key signed, what is accepted says of each pair that it is isolated if it says so of all.
func FuzzVerify(f *testing.F) {
	f.Add([]byte(payload(f, made(f, facts()))), true)
	f.Add(made(f, facts()), false)
	keys := []receipt.PublicKey{public(f, signer)}
	f.Fuzz(func(t *testing.T, data []byte, sign bool) {
		if sign {
			data = sealed(t, receipt.PayloadType, string(data))
		}
		r, err := receipt.Verify(data, keys, at)
		if err != nil {
			if !errors.Is(err, receipt.ErrForm) && !errors.Is(err, receipt.ErrKey) && !errors.Is(err, receipt.ErrStale) {
				t.Errorf("error %v is of no kind", err)
			}
			return
		}
		for _, p := range r.Predicate.Pairs {
			if r.Predicate.Verdict == v1.Isolated && p.Verdict != v1.Isolated {
				t.Errorf("isolated, and of %q and %q it says %q", p.A, p.B, p.Verdict)
			}
		}
		again, err := receipt.Sign(r.Predicate, signer)
		if errors.Is(err, receipt.ErrStale) { // issued within the minute that clocks may differ, after something ended
			return
		}
		if err != nil || !bytes.Equal(again, data) {
			t.Errorf("signed again it is %.100q, was %.100q: %v", again, data, err)
		}
	})
}
