package escrow

import (
	"bytes"
	"errors"

	"filippo.io/age"
)

// Recipients reads a list of age recipients, one a line: public keys "age1...".
func Recipients(text []byte) ([]age.Recipient, error) {
	to, err := age.ParseRecipients(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("no list of age recipients") // a line that is wrong may be a secret
	}
	return to, nil
}

// Identities reads a file of age identities, as age-keygen writes it.
func Identities(text []byte) ([]age.Identity, error) {
	ids, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("no file of age identities")
	}
	return ids, nil
}
