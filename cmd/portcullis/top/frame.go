package top

import (
	"fmt"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/screen"
)

// phases are those of hosts, as they follow each other.
var phases = []v1.Phase{v1.PhaseAdmitted, v1.PhaseGranting, v1.PhaseVerified, v1.PhaseAwaiting, v1.PhaseReleasing, v1.PhaseQuarantined}

// frame draws a screen of a width and height. Height 0 draws all there is.
func frame(s *sample, width, height int) []screen.Line {
	out := []screen.Line{screen.Styled(screen.Bold, screen.Spread("portcullis top", screen.Clock(s.Time), width))}
	out = append(out, hostLines(s.Hosts)...)
	out = append(out, managerLines(s.Manager)...)
	out = append(out, isolationLines(s.Isolation)...)
	out = append(out, brakeLines(s.Brakes)...)
	if len(out) == 1 {
		out = append(out, screen.Styled(screen.Busy, "The credential may see nothing of this."))
	}
	if s.Lost != "" {
		out = append(out, screen.Styled(screen.Bad, "Lost       "+s.Lost+"; trying again"))
	}
	share := func(part int) int {
		if height == 0 {
			return 1 << 20
		}
		return max(0, (height-len(out))/part)
	}
	out = append(out, screen.Section("WAITING               PHASE       FOR        WHY", waiting(s), share(3))...)
	out = append(out, screen.Section("VIOLATION             HOST                  COUNT  LAST      WHAT", violationLines(s), share(2))...)
	out = append(out, screen.Section("EVENTS", eventLines(s), share(1))...)
	return screen.Fit(out, width, height)
}

func hostLines(h *hosts) []screen.Line {
	if h == nil {
		return nil
	}
	var parts []string
	for _, p := range phases {
		if n := h.Phases[p]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, p))
		}
	}
	text := fmt.Sprintf("Hosts      %d", h.Total)
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	return []screen.Line{{Text: text}, {Text: fmt.Sprintf("Admitted   %d in the last %.0f minutes", h.Admitted, recently.Minutes())}}
}

func managerLines(m *v1.SM) []screen.Line {
	if m == nil {
		return nil
	}
	l := screen.Styled(screen.Busy, fmt.Sprintf("Manager    %s, %s under way", m.State, cli.Count(m.Pending, "request")))
	if m.Settled {
		l = screen.Styled(screen.Good, fmt.Sprintf("Manager    %s, settled", m.State))
	}
	if m.Leader != "" {
		l.Text += ", on " + m.Leader
	}
	out := []screen.Line{l}
	for _, p := range m.Problems[:min(len(m.Problems), 3)] {
		out = append(out, screen.Styled(screen.Bad, "           "+p))
	}
	return out
}

func isolationLines(k *v1.IsolationKept) []screen.Line {
	if k == nil {
		return nil
	}
	age := (time.Duration(k.Age) * time.Second).String()
	switch {
	case k.Found.Verdict == v1.Leaks:
		return []screen.Line{{Style: screen.Bad, Text: fmt.Sprintf("Isolation  NOT ISOLATED: %d of %d pairs, read %s ago", k.Found.Pairs.Leaks, pairs(&k.Found.Pairs), age)}}
	case k.Found.Verdict == v1.Isolated && k.Current:
		return []screen.Line{{Style: screen.Good, Text: fmt.Sprintf("Isolation  proven for %s, read %s ago", cli.Count(k.Found.Pairs.Isolated, "pair"), age)}}
	case !k.Current:
		return []screen.Line{{Style: screen.Busy, Text: fmt.Sprintf("Isolation  not proven: read %s ago, which is too old", age)}}
	default:
		return []screen.Line{{Style: screen.Busy, Text: "Isolation  not proven: " + k.Found.Reason}}
	}
}

func pairs(p *v1.IsolationPairs) int { return p.Isolated + p.Leaks + p.Unknown }

func brakeLines(b *v1.Brakes) []screen.Line {
	if b == nil {
		return nil
	}
	var out []screen.Line
	for i := range b.Items {
		if one := &b.Items[i]; one.Engaged {
			out = append(out, screen.Styled(screen.Bad, fmt.Sprintf("Brake      %s: %s keep what automatic causes would take", one.Class, cli.Count(one.Held, "host"))))
		}
	}
	return out
}

func waiting(s *sample) []screen.Line {
	if s.Hosts == nil {
		return nil
	}
	var out []screen.Line
	for i := range s.Hosts.Waiting {
		h := &s.Hosts.Waiting[i]
		out = append(out, screen.Line{Text: fmt.Sprintf("%-20s  %-10s  %-9s  %s", h.ID, h.Phase, ago(s.Time, h.Since), h.Why)})
	}
	if s.Hosts.More > 0 {
		out = append(out, screen.Line{Text: fmt.Sprintf("and %d more", s.Hosts.More)})
	}
	return out
}

func violationLines(s *sample) []screen.Line {
	var out []screen.Line
	for i := range s.Violations {
		v := &s.Violations[i]
		l := screen.Line{Text: fmt.Sprintf("%-20s  %-20s  %5d  %s  %s", v.Kind, v.Host, v.Count, screen.Clock(v.Last), v.Text)}
		if s.Time.Sub(v.Last) < time.Minute {
			l.Style = screen.Bad
		}
		out = append(out, l)
	}
	return out
}

func eventLines(s *sample) []screen.Line {
	var out []screen.Line
	for i := range s.Events {
		e := &s.Events[i]
		of := e.Type + " (" + e.Cause + ")"
		if e.Host != "" {
			of += " " + e.Host
		}
		l := screen.Line{Text: fmt.Sprintf("%s  %-8s  %s: %s", screen.Clock(e.Last), e.Severity, of, e.Seen)}
		if e.Severity == "critical" || e.Severity == "warning" {
			l.Style = screen.Bad
		}
		out = append(out, l)
	}
	return out
}

// ago is a time span in whole seconds; empty if the time is not known.
func ago(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return max(0, now.Sub(since)).Round(time.Second).String()
}
