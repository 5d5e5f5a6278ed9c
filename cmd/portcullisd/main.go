// Command portcullisd is the service: HTTPS API, admission and Subnet Manager.
package main

import (
	"context"
	"os"
)

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
