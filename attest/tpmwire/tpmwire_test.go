package tpmwire_test

import (
	"bytes"
	"testing"

	"github.com/google/go-tpm/tpm2"

	"portcullis/attest/tpmwire"
)

func TestReadIsExact(t *testing.T) {
	t.Parallel()
	good := tpm2.Marshal(tpm2.ECCEKTemplate)
	if _, err := tpmwire.Read[tpm2.TPMTPublic](good); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := tpmwire.Read[tpm2.TPMTPublic](good[:n]); err == nil {
			t.Errorf("accepted when cut at %d", n)
		}
	}
	for name, b := range map[string][]byte{
		"trailing byte": append(bytes.Clone(good), 0),
		"over its size": make([]byte, tpmwire.MaxSize+1),
		"empty":         nil,
	} {
		if v, err := tpmwire.Read[tpm2.TPMTPublic](b); err == nil {
			t.Errorf("%s: accepted as %+v", name, v)
		}
	}
	// Unmarshal alone reads a missing size as zero.
	if _, err := tpmwire.Read[tpm2.TPM2BDigest](nil); err == nil {
		t.Error("an empty TPM2B_DIGEST without its size was accepted")
	}
}

func fuzz[T tpm2.Marshallable, P tpmwire.Readable[T]](t *testing.T, b []byte) {
	v, err := tpmwire.Read[T, P](b)
	if err == nil && !bytes.Equal(tpm2.Marshal(*v), b) {
		t.Errorf("%T: accepted %x, encodes otherwise", *v, b)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(tpm2.Marshal(tpm2.ECCEKTemplate))
	f.Add(tpm2.Marshal(tpm2.RSAEKTemplate))
	f.Add(tpm2.Marshal(tpm2.TPMSAttest{
		Magic: tpm2.TPMGeneratedValue, Type: tpm2.TPMSTAttestQuote,
		Attested: tpm2.NewTPMUAttest(tpm2.TPMSTAttestQuote, &tpm2.TPMSQuoteInfo{}),
	}))
	f.Add([]byte{0, 0x18, 0, 0x0b, 0, 1, 1, 0, 1, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		fuzz[tpm2.TPMTPublic](t, b)
		fuzz[tpm2.TPMSAttest](t, b)
		fuzz[tpm2.TPMTSignature](t, b)
		fuzz[tpm2.TPM2BDigest](t, b)
	})
}
