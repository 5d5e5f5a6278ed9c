package result

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest"
)

var issued = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// sample is a host with one adapter, of which nothing is wrong.
func sample() *Claims {
	c := &Claims{
		Profile: Profile, Issuer: "https://portcullis.example", Subject: "compute-01", ID: "AAAA",
		IssuedAt: issued.Unix(), NotBefore: issued.Unix(), Expires: issued.Add(MaxLife).Unix(),
		Nonce: bytes.Repeat([]byte{7}, 32), Verifier: Verifier{Developer, "v1"},
		Submods: map[string]Appraisal{
			Platform: {Status: Affirming, Vector: Vector{Identity: Recognized, Executables: BootApproved}},
			AdapterLabel(0x0002c90300a1b2c0): {
				Status: Affirming, Vector: Vector{Hardware: Genuine, Configuration: ConfigApproved},
				Adapter: &Adapter{
					NodeGUID: 0x0002c90300a1b2c0, Ports: []Port{{Num: 1, GUID: 0x0002c90300a1b2c1}},
					Firmware: &Firmware{Version: "28.43.1014", Assurance: attest.G1},
					Lock:     &Lock{Method: attest.LockSignedFile, MLOCK: attest.MLOCKLocked, Epoch: 3},
				},
			},
		},
		Host: Host{State: StateSealed, Phase: "verified", Epoch: 2, Sealed: true, Weaknesses: nil},
	}
	c.Conclude()
	return c
}

// TestEncoding holds the bytes that are signed: other programs read them.
func TestEncoding(t *testing.T) {
	t.Parallel()
	got, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"eat_profile":"urn:portcullis:attestation-result:1","iss":"https://portcullis.example","sub":"compute-01","jti":"AAAA",` +
		`"iat":1772600767,"nbf":1772600767,"exp":1772601367,"eat_nonce":"BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=",` +
		`"ear_verifier_id":{"developer":"Portcullis","build":"v1"},"ear_status":"affirming","submods":{` +
		`"hca-0x0002c90300a1b2c0":{"ear_status":"affirming","ear_trustworthiness_vector":{"configuration":2,"hardware":2},` +
		`"ear_portcullis_adapter":{"node_guid":"0x0002c90300a1b2c0","ports":[{"port":1,"guid":"0x0002c90300a1b2c1"}],` +
		`"firmware":{"version":"28.43.1014","assurance":"G1"},"lock":{"method":"signed-file","mlock":"locked","epoch":3}}},` +
		`"platform":{"ear_status":"affirming","ear_trustworthiness_vector":{"instance-identity":2,"executables":3}}},` +
		`"ear_portcullis_host":{"state":"sealed","phase":"verified","assignment_epoch":2,"sealed":true}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	again, err := Decode(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), again); diff != "" {
		t.Errorf("-sent +read:\n%s", diff)
	}
}

func TestTiers(t *testing.T) {
	t.Parallel()
	for c, want := range map[Claim]Tier{
		0: None, 1: None, -1: None, 2: Affirming, 31: Affirming, -2: Affirming, -32: Affirming,
		32: Warning, 95: Warning, -33: Warning, -96: Warning, 96: Contraindicated, 127: Contraindicated, -97: Contraindicated, -128: Contraindicated,
	} {
		if got := c.Tier(); got != want {
			t.Errorf("claim %d is %v, want %v", c, got, want)
		}
	}
	for _, tt := range []struct {
		of   []Tier
		want Tier
	}{
		{[]Tier{Affirming, Affirming}, Affirming},
		{[]Tier{Affirming, Warning}, Warning},
		{[]Tier{Affirming, None}, None},
		{[]Tier{Warning, None}, None},
		{[]Tier{None, Contraindicated, Affirming}, Contraindicated},
	} {
		if got := Worst(tt.of...); got != tt.want {
			t.Errorf("worst of %v is %v, want %v", tt.of, got, tt.want)
		}
	}
	if got := (Vector{}).Tier(); got != None {
		t.Errorf("an empty vector is %v, want none", got)
	}
	if got := (Vector{Identity: 2, Hardware: 96, Configuration: 32}).Tier(); got != Contraindicated {
		t.Errorf("a vector with 96 in it is %v", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	right := Expect{
		Now: issued.Add(time.Minute), Skew: 30 * time.Second, Issuer: "https://portcullis.example", Host: "compute-01", Nonce: bytes.Repeat([]byte{7}, 32),
	}
	if err := sample().Check(right); err != nil {
		t.Fatalf("nothing wrong: %v", err)
	}
	for _, tt := range []struct {
		name string
		code FaultCode
		edit func(*Claims, *Expect)
	}{
		{"token of another profile", FaultProfile, func(c *Claims, _ *Expect) { c.Profile = "tag:github.com,2023:veraison/ear" }},
		{"other issuer", FaultIssuer, func(c *Claims, _ *Expect) { c.Issuer = "https://evil.example" }},
		{"other host", FaultHost, func(c *Claims, _ *Expect) { c.Subject = "compute-02" }},
		{"other nonce", FaultNonce, func(c *Claims, _ *Expect) { c.Nonce[31] ^= 1 }},
		{"nonce cut short", FaultNonce, func(c *Claims, _ *Expect) { c.Nonce = c.Nonce[:31] }},
		{"no nonce", FaultNonce, func(c *Claims, _ *Expect) { c.Nonce = nil }},
		{"expired", FaultExpired, func(_ *Claims, e *Expect) { e.Now = issued.Add(MaxLife + e.Skew) }},
		{"from the future", FaultFuture, func(_ *Claims, e *Expect) { e.Now = issued.Add(-time.Minute) }},
		{"nbf in the future alone", FaultFuture, func(c *Claims, _ *Expect) { c.NotBefore += 300 }},
		{"good for a year", FaultLife, func(c *Claims, _ *Expect) { c.Expires = c.IssuedAt + 365*86400 }},
		{"good for a second too long", FaultLife, func(c *Claims, _ *Expect) { c.Expires = c.IssuedAt + 601 }},
		{"no exp", FaultClaims, func(c *Claims, _ *Expect) { c.Expires = 0 }},
		{"exp beyond all dates", FaultClaims, func(c *Claims, _ *Expect) { c.Expires = math.MaxInt64 }},
		{"iat before all dates", FaultClaims, func(c *Claims, _ *Expect) { c.IssuedAt = math.MinInt64 }},
		{"exp before nbf", FaultClaims, func(c *Claims, _ *Expect) { c.NotBefore, c.Expires = c.NotBefore+80, c.IssuedAt+75 }},
		{"no sub", FaultClaims, func(c *Claims, e *Expect) { c.Subject, e.Host = "", "" }},
		{"no iss", FaultClaims, func(c *Claims, e *Expect) { c.Issuer, e.Issuer = "", "" }},
		{"no appraisal of the platform", FaultClaims, func(c *Claims, _ *Expect) { delete(c.Submods, Platform) }},
		{"appraisal better than its vector", FaultClaims, func(c *Claims, _ *Expect) {
			c.Submods[Platform] = Appraisal{Status: Affirming, Vector: Vector{Identity: Distrusted}}
		}},
		{"affirmed without a claim", FaultClaims, func(c *Claims, _ *Expect) { c.Submods[Platform] = Appraisal{Status: Affirming} }},
		{"result better than an appraisal", FaultClaims, func(c *Claims, _ *Expect) { c.Submods["hca-x"] = Appraisal{Status: Warning} }},
		{"result better than nothing", FaultClaims, func(c *Claims, _ *Expect) { c.Submods["hca-x"] = Appraisal{} }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, e := sample(), right
			tt.edit(c, &e)
			err := c.Check(e)
			var f *Fault
			if !errors.As(err, &f) || f.Code != tt.code {
				t.Errorf("got %v, want code %s", err, tt.code)
			}
		})
	}
}

// TestFaultsAreReportedTogether checks that all faults of a result are reported together.
func TestFaultsAreReportedTogether(t *testing.T) {
	t.Parallel()
	err := sample().Check(Expect{Now: issued.Add(time.Hour), Host: "compute-02", Issuer: "x"})
	for _, want := range []string{"compute-02", "issued by", "expired"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]string{
		"nothing":                     "",
		"a list":                      "[]",
		"truncated":                   string(good[:len(good)-1]),
		"trailing JSON":               string(good) + "{}",
		"a claim twice":               `{"sub":"a","sub":"b"}`,
		"a claim in two letter cases": `{"sub":"a","SUB":"b"}`,
		"a claim with a long s":       `{"sub":"a","ſub":"b"}`,
		"a claim with a kelvin sign":  `{"submods":{"k":{},"\u212a":{}}}`,
		"a status that EAR has not":   `{"ear_status":"excellent"}`,
		"iat as a fraction":           `{"iat":1.5}`,
		"iat as a float":              `{"iat":1.772600767e9}`,
		"nested deeply":               strings.Repeat(`{"a":`, 20) + "1" + strings.Repeat("}", 20),
		"too large":                   `{"sub":"` + strings.Repeat("a", MaxClaims) + `"}`,
	} {
		if c, err := Decode([]byte(b)); err == nil {
			t.Errorf("%s: read as %+v", name, c)
		}
	}
	if c, err := Decode([]byte(`{"sub":"a","a_claim_of_tomorrow":{"x":[1,{"y":null}]}}`)); err != nil || c.Subject != "a" {
		t.Errorf("a claim that is not known: %v", err)
	}
}

func TestForHost(t *testing.T) {
	t.Parallel()
	c := sample()
	c.Host.Reference, c.Host.Weaknesses, c.Host.Reason, c.Status = "default/7", []string{"w"}, "r", Warning
	c.Audit = &Audit{Hash: "ab", Seq: 70001, Branch: 3}
	c.ForHost()
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("reference\":\"default")) || bytes.Contains(b, []byte("weaknesses")) || bytes.Contains(b, []byte("reason")) || c.Status != Warning {
		t.Errorf("a host is told %s", b)
	}
	if *c.Audit != (Audit{Hash: "ab"}) {
		t.Errorf("a host is told %+v of the audit log", c.Audit)
	}
}

func FuzzDecode(f *testing.F) {
	good, err := sample().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"submods":{"a":{}},"iat":-1}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Decode(b)
		if err != nil {
			return
		}
		_ = c.Check(Expect{Now: issued, Skew: time.Minute})
		once, err := c.Encode()
		if err != nil {
			return // longer than the limit of signed results
		}
		again, err := Decode(once)
		if err != nil {
			t.Fatalf("%s: encoded as %s, which does not decode: %v", b, once, err)
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s, then %s (%v)", once, twice, err)
		}
	})
}
