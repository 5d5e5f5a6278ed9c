package sm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/portcullis/cli"
	"portcullis/cmd/portcullis/screen"
)

type line = screen.Line

const (
	normal = screen.Normal
	bold   = screen.Bold
	good   = screen.Good
	busy   = screen.Busy
	bad    = screen.Bad
)

// sample is what a frame is made of: the newest report and the one before it.
type sample struct {
	now, before *v1.SMProgress // before is nil at first
	rates       []float64      // requests a second, newest last
	lost        string         // why there is no newer report; empty: there is
}

// rate is how many requests were sent a second between two reports.
func rate(now, before *v1.SMProgress, sent func(*v1.SMProgress) uint64) float64 {
	if before == nil || !now.Observed.After(before.Observed) || sent(now) < sent(before) {
		return 0
	}
	return float64(sent(now)-sent(before)) / now.Observed.Sub(before.Observed).Seconds()
}

// frame draws a screen of a width and height. Height 0 draws all there is.
func frame(s *sample, width, height int) []line {
	p := s.now
	out := []line{
		screen.Styled(bold, screen.Spread(fmt.Sprintf("portcullis sm top  %s  %v  LID %v  priority %d", p.State, p.GUID, p.LID, p.Priority), screen.Clock(p.Now), width)),
		phaseLine(p),
		screen.Styled(normal, fmt.Sprintf("Nodes     %s; %s", cli.NodeCounts(p.Nodes), cli.Count(p.Links, "link"))),
		screen.Styled(normal, "Ports     "+portsLine(&p.Ports, width)),
		screen.Styled(normal, "Routing   "+topRouting(p)),
		screen.Styled(normal, fmt.Sprintf("Requests  %d sent; %d refused, %d lost, %d repeated; %d of %d out", p.Sent, p.Refused, p.Timeouts+p.Nobody, p.Retries, p.Out, p.Window)),
		screen.Styled(normal, fmt.Sprintf("Per sec   %-8.0f %s", rate(p, s.before, func(p *v1.SMProgress) uint64 { return p.Sent }), sparks(s.rates, max(0, min(60, width-20))))),
		screen.Styled(normal, "Waiting   "+queuesLine(p)),
	}
	if s.lost != "" {
		out = append(out, screen.Styled(bad, "Lost      "+s.lost+"; trying again"))
	}
	room := func() int {
		if height == 0 {
			return 1 << 20
		}
		return height - len(out)
	}
	out = append(out, screen.Section("", faultLines(p), min(room(), 6))...)
	out = append(out, screen.Section("REQUEST                             SENT      /S", kindLines(s), min(room(), share(height)))...)
	out = append(out, screen.Section("SETTLED   SECONDS     REQUESTS  CAUSE", settleLines(p), min(room(), 5))...)
	out = append(out, screen.Section("EVENTS", eventLines(p, room()-2), room())...)
	return screen.Fit(out, width, height)
}

// share is how many lines the table of requests may take.
func share(height int) int {
	if height == 0 {
		return 1 << 20
	}
	return max(4, height/3)
}

func phaseLine(p *v1.SMProgress) line {
	text := fmt.Sprintf("Phase     %s for %s", p.Phase, age(p))
	if p.Settled {
		return screen.Styled(good, fmt.Sprintf("Settled   yes, revision %d, for %s", p.Revision, age(p)))
	}
	return screen.Styled(busy, text+fmt.Sprintf(", revision %d", p.Revision))
}

// age is how long ago the fabric was settled last, or the start.
func age(p *v1.SMProgress) string {
	since := p.Started
	if n := len(p.Settles); n > 0 {
		since = p.Settles[n-1].Time
	}
	return max(0, p.Now.Sub(since)).Round(time.Second).String()
}

// portsLine shows as a bar and in numbers how many ports are active, and the states of the others.
func portsLine(c *v1.PortCounts, width int) string {
	text := fmt.Sprintf("%d of %d active", c.Active, c.Cabled)
	rest := *c
	rest.Active = 0
	if _, others, ok := strings.Cut(cli.PortCounts(&rest), ", "); ok {
		text += "; " + others
	}
	room := min(30, width-10-len(text)-4)
	if room < 5 || c.Cabled == 0 {
		return text
	}
	full := c.Active * room / c.Cabled
	return fmt.Sprintf("[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", room-full), text)
}

func topRouting(p *v1.SMProgress) string {
	text := "no tables yet"
	if p.Routing.Engine != "" {
		text = fmt.Sprintf("%s in %s, %s", p.Routing.Engine, cli.Seconds(p.Routing.Seconds), cli.Count(p.Routing.LIDs, "LID"))
	}
	if p.Busy {
		text += ", computing"
	}
	if p.Blocks > 0 || p.Behind > 0 {
		text += fmt.Sprintf(", %s to write on %s", cli.Count(p.Blocks, "block"), cli.Count(p.Behind, "switch"))
	}
	return text
}

func queuesLine(p *v1.SMProgress) string {
	var parts []string
	for _, q := range p.Queues {
		parts = append(parts, fmt.Sprintf("%s %d", q.Name, q.Len))
	}
	if p.Waiting > 0 {
		parts = append(parts, fmt.Sprintf("for forwarding %d", p.Waiting))
	}
	if p.Pauses > 0 {
		parts = append(parts, fmt.Sprintf("to be tried again %d", p.Pauses))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

func faultLines(p *v1.SMProgress) []line {
	if p.NFaults == 0 {
		return nil
	}
	out := []line{screen.Styled(bold, fmt.Sprintf("PROBLEMS (%d)", p.NFaults))}
	for _, f := range p.Faults {
		text := f.Text
		if f.At != "" {
			text = f.At + ": " + text
		}
		out = append(out, screen.Styled(bad, text))
	}
	return out
}

// kindLines lists kinds of requests, the busiest first.
func kindLines(s *sample) []line {
	type row struct {
		name string
		sent uint64
		rate float64
	}
	var rows []row
	for _, k := range s.now.SMPs {
		name := k.Method + " " + k.Attribute
		sent := func(p *v1.SMProgress) uint64 {
			for _, o := range p.SMPs {
				if o.Method == k.Method && o.Attribute == k.Attribute {
					return o.Sent
				}
			}
			return 0
		}
		rows = append(rows, row{name, k.Sent, rate(s.now, s.before, sent)})
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(-cmp.Compare(a.rate, b.rate), -cmp.Compare(a.sent, b.sent), strings.Compare(a.name, b.name))
	})
	out := make([]line, 0, len(rows))
	for _, r := range rows {
		out = append(out, screen.Styled(normal, fmt.Sprintf("%-30s  %8d  %6.0f", r.name, r.sent, r.rate)))
	}
	return out
}

// settleLines lists what was settled last, newest first.
func settleLines(p *v1.SMProgress) []line {
	out := make([]line, 0, len(p.Settles))
	for _, s := range slices.Backward(p.Settles) {
		out = append(out, screen.Styled(normal, fmt.Sprintf("%s  %-10s  %8d  %s", screen.Clock(s.Time), cli.Seconds(s.Seconds), s.SMPs, s.Cause)))
	}
	return out
}

// eventLines lists the last events, newest last. Many of a kind, one after the
// other, are one line.
func eventLines(p *v1.SMProgress, most int) []line {
	out := make([]line, 0, len(p.Events))
	for i := range p.Events {
		e := &p.Events[i]
		s, text := normal, e.Text
		if e.Level == "warning" {
			s = bad
		}
		if e.Count > 1 {
			text = fmt.Sprintf("%d more %s, the last: %s", e.Count, e.Event, e.Text)
		}
		out = append(out, screen.Styled(s, screen.Clock(e.Time)+"  "+text))
	}
	return out[max(0, len(out)-max(0, most)):]
}

// sparks draws the last values as small bars.
func sparks(values []float64, width int) string {
	values = values[max(0, len(values)-width):]
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	if top == 0 {
		return ""
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	out := make([]rune, len(values))
	for i, v := range values {
		out[i] = bars[int(v/top*float64(len(bars)-1)+0.5)]
	}
	return string(out)
}
