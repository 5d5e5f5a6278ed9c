package setup

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"portcullis/api/credential"
	"portcullis/api/roles"
	"portcullis/cmd/portcullisd/command"
)

// Token makes an operator token: the token on standard output, the entry
// for the tokens file on standard error.
func Token(args []string, stdout, stderr io.Writer) error {
	fs := flag.NewFlagSet("portcullisd token", flag.ContinueOnError)
	name := fs.String("name", "", "who it is for; appears in the audit log")
	roleName := fs.String("role", "", roles.OneOf(roles.All())+"; docs/operate/roles.md says what each may do")
	keys := fs.String("p-keys", "", "of an operator or scheduler: only clusters of these P_Keys, such as 0x0100-0x01ff; several with commas")
	days := fs.Int("days", tokenDays, "for how many days it is good; 0: it has no end")
	hosts := fs.String("hosts", "", "with --p-keys: hosts that it may take into its clusters, by id or with * in it; several with commas")
	tenants := fs.String("tenant", "", "with --role tenant: of which tenants; several with commas")
	if err := command.Parse(fs, "", args, stdout, stderr); err != nil {
		return err
	}
	var r credential.Role
	if err := r.UnmarshalText([]byte(*roleName)); err != nil || *name == "" {
		fmt.Fprintf(stderr, "portcullisd: token: want --name NAME and --role %s\n", roles.OneOf(roles.All()))
		return command.ErrUsage
	}
	if *days < 0 || *days > maxTokenDays {
		fmt.Fprintf(stderr, "portcullisd: token: --days %d: want 0 to %d\n", *days, maxTokenDays)
		return command.ErrUsage
	}
	token, digest := credential.New()
	entry := tokenEntry(*name, r, digest, time.Now(), *days) + scopeEntry(*keys, *hosts, *tenants)
	if err := credential.CheckEntry(entry); err != nil {
		fmt.Fprintf(stderr, "portcullisd: token: no token was made, because the service would refuse its tokens file (tokens in portcullisd.yaml) with this entry:\n%v\n", err)
		fmt.Fprintln(stderr, "portcullisd: token: correct --name, --role, --p-keys, --hosts or --tenant; docs/operate/roles.md says which go together")
		return command.ErrUsage
	}
	fmt.Fprintln(stdout, token)
	fmt.Fprintf(stderr, "# Append this to the tokens file, then reload the service. The token is shown once.\n%s", entry)
	return nil
}

const (
	tokenDays    = 365
	maxTokenDays = 3650
	// firstTokenDays is for the token that init makes: as long as the certificate that it makes.
	firstTokenDays = 2 * 365
)

// tokenEntry returns the lines of an entry for a token that is made now. With no days it has no end.
func tokenEntry(name string, r credential.Role, digest string, now time.Time, days int) string {
	entry := fmt.Sprintf("- name: %q\n  role: %s\n  sha256: %s\n  created: %s\n", name, r, digest, stamp(now))
	if days > 0 {
		entry += fmt.Sprintf("  expires: %s\n", stamp(now.AddDate(0, 0, days)))
	}
	return entry
}

// scopeEntry returns the lines of an entry that confine a token, none without keys, hosts and tenants.
func scopeEntry(keys, hosts, tenants string) (lines string) {
	for _, list := range [][2]string{{"p_keys", keys}, {"hosts", hosts}, {"tenants", tenants}} {
		if list[1] != "" {
			lines += fmt.Sprintf("  %s: [%s]\n", list[0], quotedList(strings.Split(list[1], ",")))
		}
	}
	return lines
}

func quotedList(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = fmt.Sprintf("%q", strings.TrimSpace(w))
	}
	return strings.Join(out, ", ")
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
