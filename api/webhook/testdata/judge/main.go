// Judge verifies requests with the library of Standard Webhooks. Each line has a request in JSON; it prints the ids of those that
// verify, and an error for each other.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var r struct {
			Secret  string
			Headers http.Header
			Body    []byte
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fail(err)
		}
		w, err := standardwebhooks.NewWebhook(r.Secret)
		if err != nil {
			fail(err)
		}
		if err := w.Verify(r.Body, r.Headers); err != nil {
			fmt.Println("refused:", err)
			continue
		}
		fmt.Println(r.Headers.Get(standardwebhooks.HeaderWebhookID))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
