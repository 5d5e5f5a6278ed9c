package fabric

import (
	"fmt"
	"strings"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
)

// administrationWords say verdicts about subnet administration to people.
var administrationWords = map[string]string{
	v1.SAConfined: "names nothing of others", v1.SADiscloses: "DISCLOSES", v1.SAUnknown: "not proven", v1.SANotExamined: "not examined",
}

// showAdministration shows what subnet administration answers to ports. A service of an earlier version says nothing of it.
func showAdministration(w *cli.Columns, a *v1.IsolationAdministration) {
	w.Gap()
	text := "subnet administration: " + administrationWords[a.Verdict]
	if administrationWords[a.Verdict] == "" {
		text += "not examined: the service says nothing of it"
	}
	if a.Reason != "" {
		text += ": " + a.Reason
	}
	w.Text("%s", text)
	if a.Questions > 0 {
		w.Text("%s of %d parties asked %s; %s with %s; %s not judged", cli.Count(a.Ports, "port"), a.Parties, cli.Count(a.Questions, "question"),
			cli.Count(a.Answers, "answer"), cli.Count(a.Records, "record"), cli.Count(a.Undecided, "name"))
	}
	if a.Unasked > 0 {
		w.Text("%d further parties did not ask", a.Unasked)
	}
	if a.Silent > 0 {
		w.Text("%s got no answer at all", cli.Count(a.Silent, "port"))
	}
	for i := range a.Disclosures {
		d := &a.Disclosures[i]
		w.Text("to %s, in a %s: %s", disclosurePort(&d.From, "a LID that no port has"), d.Record, disclosed(d))
		w.Text("  cure: %s", d.Cure)
	}
	if n := a.Disclosed - len(a.Disclosures); n > 0 {
		w.Text("and %d more", n)
	}
}

// disclosed says what was disclosed.
func disclosed(d *v1.IsolationDisclosure) string {
	switch {
	case d.Secret:
		return "the key " + d.Field
	case d.About.GUID != 0:
		return fmt.Sprintf("%s %s, which is %s; shared P_Key: none", d.Field, d.Value, disclosurePort(&d.About, ""))
	case d.About.Party != "":
		return fmt.Sprintf("%s %s, which is a partition of %s", d.Field, d.Value, d.About.Party)
	}
	return fmt.Sprintf("%s %s, a partition that it does not have", d.Field, d.Value)
}

func disclosurePort(p *v1.DisclosurePort, none string) string {
	if p.GUID == 0 {
		return none
	}
	words := []string{"port " + cli.GUID(p.GUID)}
	if p.Host != "" {
		words = append(words, "of "+p.Host)
	}
	if !p.Place.IsZero() {
		words = append(words, "at "+p.Place.String())
	}
	return strings.Join(append(words, "("+p.Party+")"), " ")
}
