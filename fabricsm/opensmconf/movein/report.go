package movein

import (
	"fmt"
	"strings"

	"portcullis/fabricsm/opensmconf/verdict"
	"portcullis/fabricsm/partition/conf"
)

// report returns the report as Markdown.
func (p *Plan) report() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Moving in from %s\n\n", map[Kind]string{OpenSM: "OpenSM", UFM: "UFM"}[p.Kind])
	b.WriteString("| Verdict | Settings |\n|---|---|\n")
	for _, c := range verdict.Classes() {
		fmt.Fprintf(&b, "| %s | %d |\n", c, p.Count(c))
	}
	if n := p.Open(); n > 0 {
		fmt.Fprintf(&b, "\nBy %d settings the fabric behaves otherwise, and they are not accepted. They come first below.\n", n)
	}
	for _, c := range verdict.Classes() {
		if p.Count(c) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n| Where | Setting | Key and value here | |\n|---|---|---|---|\n", strings.ToUpper(string(c[:1]))+string(c[1:]))
		for i := range p.Items {
			if it := &p.Items[i]; it.Verdict == c {
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cell(it.Place()), cell(it.What()), cell(it.Here()), cell(it.Note()))
			}
		}
	}
	b.WriteString(everySite)
	p.reportPartitions(&b)
	p.reportFiles(&b)
	return []byte(b.String())
}

// everySite says what no setting asks for.
const everySite = `
## For every site

- Hosts are limited members of the default partition, and reach each other in partitions of their own only.
- Subnet administration drops requests without the SA_Key outside a short list, and those with the source GID of another
  port; a host sees its own records and those of ports that it shares a partition with.
- Requests and reports of each host are bounded.
- Routes by which packets could wait for each other in a circle, or a LID cannot be reached, are refused.
- Links and switches that misbehave too often are isolated or reported, see fabric.health.
`

// reportPartitions says what a service needs in place of the partitions.
func (p *Plan) reportPartitions(b *strings.Builder) {
	if len(p.clusters) == 0 {
		return
	}
	b.WriteString(`
## Partitions

` + "`portcullisd sm --partitions partitions.conf`" + ` reads the partitions. A service has clusters instead, whose hosts prove what
they are before they become members. For each partition: make the cluster, import the hosts that have the ports, and
assign them.

| Partition | P_Key | Cluster | Members |
|---|---|---|---|
`)
	for i := range p.clusters {
		part := &p.clusters[i]
		name := part.Name
		if name == "" {
			name = fmt.Sprintf("pkey-%04x", uint16(part.PKey.Base()))
		}
		fmt.Fprintf(b, "| %s | %v | `portcullis cluster create %s --tenant TENANT --p-key %v` | %s |\n", cell(part.Name), part.PKey.Base(), code(name), part.PKey.Base(), members(part.Who))
	}
}

// maxMembers bounds how many members of a partition a report names.
const maxMembers = 64

func members(who []conf.Who) string {
	var out []string
	for i, w := range who {
		if i == maxMembers {
			out = append(out, fmt.Sprintf("and %d more", len(who)-i))
			break
		}
		switch w.Group {
		case conf.Self:
			out = append(out, "the manager's own port")
		case conf.AllCAs:
			out = append(out, "all ports of hosts")
		case conf.AllRouters:
			out = append(out, "all ports of routers")
		default:
			out = append(out, w.GUID.String())
		}
	}
	return strings.Join(out, ", ")
}

func (p *Plan) reportFiles(b *strings.Builder) {
	b.WriteString("\n## Files\n\n| File | |\n|---|---|\n")
	for _, f := range p.Files {
		note := ""
		if f.Secret {
			note = "secret, mode 0600"
		}
		if f.Name != "report.md" {
			fmt.Fprintf(b, "| %s | %s |\n", cell(f.Name), note)
		}
	}
	if p.Root {
		fmt.Fprintf(b, "| %s | secret, mode 0600: opens the sealed keys of devices; back it up, apart from the state |\n", RootName)
	}
}

// What returns the setting, with its value where that may be shown.
func (i *Item) What() string { return strings.TrimSpace(i.Setting + " " + short(i.Value)) }

// Here returns the key and the value that is written there.
func (i *Item) Here() string {
	if i.Key == "" || i.To == "" {
		return i.Key + i.To
	}
	return i.Key + ": " + i.To
}

// Note returns the text, with what is lost and accepted.
func (i *Item) Note() string {
	switch {
	case i.Loses && i.Accepted:
		return "(accepted) " + i.Text
	case i.Loses:
		return "(other behaviour) " + i.Text
	default:
		return i.Text
	}
}

// cell returns a text that ends no cell of a table and begins no markup.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "\r", " ", "<", "&lt;", "`", "'").Replace(s)
}

// code returns a name as one word of a shell's command.
func code(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.')
	}) {
		return "NAME"
	}
	return s
}
