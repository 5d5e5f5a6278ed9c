package query

import (
	"context"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/limiter"
	"portcullis/fabricsm/sa/trust"
	"portcullis/fabricsm/sm/violation"

	"github.com/prometheus/client_golang/prometheus"
)

// OnSA takes how subnet administration stands. It does not block.
func (o *Observer) OnSA(s *sa.Status) { o.administration.Store(s) }

// firstSAViolation is where the IDs of violations of subnet administration begin, past
// all others.
const firstSAViolation = 1 << 48

// firstFlood is where those of floods of packets of other classes begin, past these.
const firstFlood = 1 << 49

// flood is a row about packets of other classes that the limiter dropped.
func (o *Observer) flood(x *index, v *trust.Violation) v1.FabricViolation {
	row := o.saViolation(x, v)
	row.ID, row.Kind = firstFlood+v.ID, "mad-"+v.Verdict.String()
	return row
}

// saViolation is a row about a request that was dropped. Only the LID names the sender, and the switches in between do not
// check it.
func (o *Observer) saViolation(x *index, v *trust.Violation) v1.FabricViolation {
	who := o.ownerOf(v.Place)
	row := v1.FabricViolation{
		ID: firstSAViolation + v.ID, Kind: "sa-" + v.Verdict.String(), Verdict: "claimed", Place: v.Place, GUID: v.GUID, LID: v.LID,
		Host: who.host, Tenant: who.tenant, Detail: v.What(), Count: v.Count, First: v.First, Last: v.Last, Others: v.Others, Text: v.String(),
	}
	if !v.Place.IsZero() {
		row.At, row.By = x.placeName(v.Place), violation.ByLID.String()
		if !v.LID.IsUnicast() {
			row.By = violation.ByWay.String()
		}
	}
	return row
}

// SA says how subnet administration stands.
func (o *Observer) SA(context.Context) (*v1.FabricSA, error) {
	x, s, err := o.administered()
	if err != nil {
		return nil, err
	}
	out := &v1.FabricSA{
		Observed: x.Time.UTC(), Serving: s.Serving, Groups: s.Groups, Services: s.Services, Subscriptions: s.Subscriptions, Aliased: s.Aliases,
		KeyEpoch: uint32(s.Epoch), KeyGrace: s.Grace.UTC(), Packets: s.Stats.Packets, Answers: s.Stats.Answers, Tables: s.Stats.Tables,
		Unserved: s.Stats.Unserved, Costly: s.Stats.Costly, Refused: map[string]uint64{}, Limited: map[string]uint64{},
		Sessions: s.Stats.RMPP.Sending + s.Stats.RMPP.Receiving,
		Reports: v1.SAReports{
			Sent: s.Reports.Sent, Resent: s.Reports.Resent, Answered: s.Reports.Answered, Failed: s.Reports.Failed, Dropped: s.Reports.Dropped,
			OnWire: s.Reports.OnWire, Queued: s.Reports.Queued,
		},
	}
	if s.Since.After(time.Unix(0, 0)) { // a key of a file has no beginning
		out.KeySince = s.Since.UTC()
	}
	for v := trust.OK + 1; int(v) < trust.NumVerdicts; v++ {
		if n := s.Stats.Refused[v]; n > 0 {
			out.Refused[v.String()] = n
		}
	}
	for lane := range s.Limiter {
		for v := limiter.Pass + 1; int(v) < limiter.NumVerdicts; v++ {
			if n := s.Limiter[lane][v]; n > 0 {
				out.Limited[limiter.Lane(lane).String()+"/"+v.String()] = n
			}
		}
	}
	return out, nil
}

type saDescs struct {
	serving, packets, answers, tables, refused, limited, costly *prometheus.Desc
	sessions, aborted, segments, resent                         *prometheus.Desc
	held, reports, waiting, epoch, since, front                 *prometheus.Desc
}

func newSADescs() saDescs {
	return saDescs{
		serving:  desc("sa_serving", "1 while hosts are answered as subnet administration."),
		packets:  desc("sa_packets_total", "Packets of subnet administration that came."),
		answers:  desc("sa_answers_total", "Answers of one MAD."),
		tables:   desc("sa_tables_total", "Tables that were begun."),
		refused:  desc("sa_refused_total", "Requests that were dropped for security, by why.", "verdict"),
		limited:  desc("sa_limited_total", "Packets that the limiter dropped.", "lane", "verdict"),
		front:    desc("mad_limited_total", "Packets beside subnet administration that no requester waits for, by what the limiter did.", "lane", "verdict"),
		costly:   desc("sa_costly_total", "Questions that were dropped since the answer would have cost too much."),
		sessions: desc("sa_rmpp_sessions", "Messages of several segments that are under way.", "direction"),
		aborted:  desc("sa_rmpp_ended_total", "Such messages that did not come through, by who ended them.", "by"),
		segments: desc("sa_rmpp_segments_total", "Segments sent."),
		resent:   desc("sa_rmpp_resent_total", "Of these, sent again."),
		held:     desc("sa_registered", "What is registered now.", "what"),
		reports:  desc("sa_reports_total", "Reports to subscribers by what became of them.", "result"),
		waiting:  desc("sa_reports_waiting", "Reports that are under way, and that wait.", "where"),
		epoch:    desc("sa_key_epoch", "Number of the SA_Key in force; 0: there is none."),
		since:    desc("sa_key_since_timestamp_seconds", "When the SA_Key came into force."),
	}
}

func (d *saDescs) describe(ch chan<- *prometheus.Desc) {
	for _, one := range []*prometheus.Desc{
		d.serving, d.packets, d.answers, d.tables, d.refused, d.limited, d.costly, d.sessions, d.aborted, d.segments, d.resent,
		d.held, d.reports, d.waiting, d.epoch, d.since, d.front,
	} {
		ch <- one
	}
}

// administration sends how subnet administration stands. All series of a label are there
// from the beginning, at 0.
func (g *gauges) administration(s *sa.Status) {
	d, c, r := &g.d.sa, &s.Stats, &s.Stats.RMPP
	g.gauge(d.serving, truth(s.Serving))
	g.counter(d.packets, c.Packets)
	g.counter(d.answers, c.Answers)
	g.counter(d.tables, c.Tables)
	g.counter(d.costly, c.Costly)
	for v := trust.OK + 1; int(v) < trust.NumVerdicts; v++ {
		g.counter(d.refused, c.Refused[v], label(v.String()))
	}
	for lane := range s.Limiter {
		for v := limiter.Pass + 1; int(v) < limiter.NumVerdicts; v++ {
			g.counter(d.limited, s.Limiter[lane][v], limiter.Lane(lane).String(), label(v.String()))
		}
	}
	for _, lane := range []limiter.Lane{limiter.Management, limiter.Other, limiter.Managers} {
		for v := range limiter.Verdict(limiter.NumVerdicts) {
			g.counter(d.front, s.Front.Limiter[lane][v], lane.String(), label(v.String()))
		}
	}
	g.gauge(d.sessions, float64(r.Sending), "sending")
	g.gauge(d.sessions, float64(r.Receiving), "receiving")
	g.counter(d.aborted, r.Stops, "stop")
	g.counter(d.aborted, r.PeerStop, "peer_stop")
	g.counter(d.aborted, r.PeerEnd, "peer_abort")
	g.counter(d.aborted, r.Refused, "no_room")
	g.counter(d.aborted, r.Evicted, "evicted")
	g.counter(d.segments, r.Segments)
	g.counter(d.resent, r.Resent)
	for what, n := range map[string]int{"groups": s.Groups, "services": s.Services, "subscriptions": s.Subscriptions, "aliased_ports": s.Aliases} {
		g.gauge(d.held, float64(n), what)
	}
	for result, n := range map[string]uint64{
		"sent": s.Reports.Sent, "resent": s.Reports.Resent, "answered": s.Reports.Answered, "failed": s.Reports.Failed, "dropped": s.Reports.Dropped,
	} {
		g.counter(d.reports, n, result)
	}
	g.gauge(d.waiting, float64(s.Reports.OnWire), "wire")
	g.gauge(d.waiting, float64(s.Reports.Queued), "queue")
	g.gauge(d.epoch, float64(s.Epoch))
	if s.Since.After(time.Unix(0, 0)) {
		g.gauge(d.since, float64(s.Since.UnixMilli())/1000)
	}
}

func label(name string) string { return strings.ReplaceAll(name, "-", "_") }
