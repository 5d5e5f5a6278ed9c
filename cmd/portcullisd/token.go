package main

import (
	"flag"
	"fmt"
	"io"

	"portcullis/api"
)

// runToken makes an operator token: the token on standard output, the entry
// for the tokens file on standard error.
func runToken(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("portcullisd token", flag.ContinueOnError)
	name := fs.String("name", "", "who it is for; appears in the audit log")
	roleName := fs.String("role", "", "viewer or operator")
	if err := parse(fs, "", args, stdout, stderr); err != nil {
		return err
	}
	var r api.Role
	if err := r.UnmarshalText([]byte(*roleName)); err != nil || *name == "" {
		fmt.Fprintf(stderr, "portcullisd: token: want --name NAME and --role viewer or operator\n")
		return errUsage
	}
	token, digest := api.NewToken()
	fmt.Fprintln(stdout, token)
	fmt.Fprintf(stderr, "Append this to the tokens file, then reload the service. The token above is shown once.\n%s", tokenEntry(*name, r, digest))
	return nil
}

func tokenEntry(name string, r api.Role, digest string) string {
	return fmt.Sprintf("- name: %q\n  role: %s\n  sha256: %s\n", name, r, digest)
}
