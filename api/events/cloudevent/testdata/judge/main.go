// Judge reads an event in JSON on each line as the SDK of CloudEvents does, validates it, and prints what it read.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
)

func main() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var e event.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fail(err)
		}
		if err := e.Validate(); err != nil {
			fail(err)
		}
		var data struct{ ID, Severity string }
		if err := e.DataAs(&data); err != nil {
			fail(err)
		}
		if data.ID != e.ID() || e.SpecVersion() != "1.0" || e.DataContentType() != "application/json" {
			fail(fmt.Errorf("event %s, of version %s and type %s, has the data of %s", e.ID(), e.SpecVersion(), e.DataContentType(), data.ID))
		}
		fmt.Println(e.ID(), e.Type(), e.Source(), e.Subject(), e.Time().Format(time.RFC3339Nano), e.Extensions()["severity"])
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
