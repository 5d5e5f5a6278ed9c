package token

import (
	"errors"
	"strings"
	"testing"
)

func TestAnchor(t *testing.T) {
	s := newSigner(t)
	key, keys, kid := s.key, s.keys, s.kid
	content := []byte(`{"seq":7}`)
	jws, err := SignAnchor(content, kid, key)
	if err != nil || strings.Count(jws, ".") != 2 || !strings.Contains(jws, "..") {
		t.Fatalf("%q, %v", jws, err)
	}
	if got, err := VerifyAnchor(content, jws, keys); err != nil || got != kid {
		t.Errorf("VerifyAnchor = %q, %v; want %q", got, err, kid)
	}
	result, err := Sign(content, kid, key)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(result, ".")
	for name, tt := range map[string]struct {
		content, jws string
		want         Code
	}{
		"other content":      {`{"seq":8}`, jws, BadSignature},
		"none":               {string(content), "", BadForm},
		"content attached":   {string(content), result, BadForm},
		"sig of a result":    {string(content), parts[0] + ".." + parts[2], BadType},
		"cut":                {string(content), jws[:len(jws)-2], BadSignature},
		"more than a header": {string(content), "e30.e30" + jws, BadForm},
	} {
		_, err := VerifyAnchor([]byte(tt.content), tt.jws, keys)
		if e, ok := errors.AsType[*Error](err); !ok || e.Code != tt.want {
			t.Errorf("%s: %v, want code %s", name, err, tt.want)
		}
	}
	// Nor is the signature of an anchor one of a result.
	head, sig, _ := strings.Cut(jws, "..")
	_, _, err = Verify(head+"."+parts[1]+"."+sig, keys)
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != BadType {
		t.Errorf("an anchor as a result: %v, want code %s", err, BadType)
	}
}
