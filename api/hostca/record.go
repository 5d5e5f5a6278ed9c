package hostca

import (
	"slices"
	"time"

	"portcullis/api/store"
)

// record is all authorities. There is one.
type record struct {
	Vault       []byte      `json:"vault"` // header of what the keys are sealed in
	Authorities []authority `json:"authorities"`
}

// authority is a root and its sealed key. They stand in the order in which they sign.
type authority struct {
	ID          string    `json:"id"` // serial number of the certificate, in hex
	Domain      string    `json:"domain"`
	Certificate []byte    `json:"certificate"` // DER
	Key         string    `json:"key"`         // sealed PKCS #8
	From        time.Time `json:"from"`        // signs from then on
	Until       time.Time `json:"until"`       // of the certificate
}

const theRecord = "authorities"

func records() store.Collection[record] { return store.NewCollection[record]("host-authority", 1) }

// signer gives the place of the authority that signs at now, -1 if none does.
func (r *record) signer(now time.Time) int {
	for i, a := range slices.Backward(r.Authorities) {
		if !a.From.After(now) {
			return i
		}
	}
	return -1
}

// next reports whether there is an authority that does not sign yet.
func (r *record) next(now time.Time) bool {
	n := len(r.Authorities)
	return n > 0 && r.Authorities[n-1].From.After(now)
}

// trusted drops authorities of which no certificate can be in force.
func (r *record) trusted(now time.Time) []authority {
	first := 0
	for i := 1; i < len(r.Authorities); i++ {
		if !r.Authorities[i].From.Add(MaxLife).After(now) {
			first = i
		}
	}
	return slices.DeleteFunc(slices.Clone(r.Authorities[first:]), func(a authority) bool { return !now.Before(a.Until) })
}
