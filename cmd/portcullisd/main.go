// Command portcullisd is the service: HTTPS API, admission and Subnet Manager.
package main

import (
	"context"
	"os"
	"time"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:], time.Now, os.Stdin, os.Stdout, os.Stderr))
}
