// Command spiffe judges SPIFFE IDs, and certificates of machines, with the library of the SPIFFE project. It reads a line each from standard input,
// JSON of an ID or of a chain with its authorities, and answers with the ID that it sees in a line, empty if it refuses.
package main

import (
	"bufio"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/x509bundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

// question is a line. Chain is empty for an ID alone.
type question struct {
	ID     string
	Domain string
	Chain  [][]byte
	Roots  [][]byte
	At     time.Time
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	fmt.Println("ready")
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		id, err := judge(&q)
		if err != nil {
			id = ""
		}
		fmt.Printf("%q\n", id)
	}
}

func judge(q *question) (string, error) {
	if len(q.Chain) == 0 {
		id, err := spiffeid.FromString(q.ID)
		return id.String(), err
	}
	domain, err := spiffeid.TrustDomainFromString(q.Domain)
	if err != nil {
		return "", err
	}
	var roots []*x509.Certificate
	for _, der := range q.Roots {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return "", err
		}
		roots = append(roots, c)
	}
	id, _, err := x509svid.ParseAndVerify(q.Chain, x509bundle.FromX509Authorities(domain, roots), x509svid.WithTime(q.At))
	return id.String(), err
}
