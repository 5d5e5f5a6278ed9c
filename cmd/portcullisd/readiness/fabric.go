package readiness

import (
	"log/slog"

	"portcullis/api/leader"
	v1 "portcullis/api/v1"
)

// Fabric reports whether the fabric is managed, and whether hosts are answered there.
type Fabric struct {
	status  *Status
	answers bool // hosts are answered by subnet administration, too
	log     *slog.Logger
}

// NewFabric returns a reporter that has reported nothing. With answers, subnet administration is a part, too.
func NewFabric(s *Status, answers bool, log *slog.Logger) *Fabric {
	return &Fabric{status: s, answers: answers, log: log}
}

// Unattached is the obstacle before the fabric was attached to.
const Unattached = "not attached yet"

const noLeader = "no instance leads as Subnet Manager, as far as this one knows"

// Set sets the obstacle to managing the fabric, by what the subnet manager shows; "" for none. It reports whether that changed.
func (f *Fabric) Set(detail string) bool {
	changed := f.status.Set(SM, detail)
	if f.answers {
		f.status.Set(SA, detail)
	}
	return changed
}

// Leaderless sets that no instance is known to lead.
func (f *Fabric) Leaderless() { f.Set(noLeader) }

// Led takes how leadership stands.
func (f *Fabric) Led(now leader.State) {
	if !now.Leads {
		f.unsighted()
	}
	switch {
	case now.Leads:
		f.Set(Unattached)
	case now.Leader == "":
		f.Leaderless()
	default:
		f.Set("")
	}
}

// unsighted ends what was reported of the sight of this instance, which does not look at the fabric any more.
func (f *Fabric) unsighted() {
	f.status.SetAspect(SM, Sight, "")
	if f.answers {
		f.status.SetAspect(SA, Sight, "")
	}
}

// See takes whether the subnet manager sees what it knows.
func (f *Fabric) See(seen v1.Sight) {
	detail, unreached := "", ""
	if seen.Frozen() {
		detail = seen.State + ": " + seen.Reason
	}
	if seen.State == v1.SightBlind {
		unreached = "no host is in reach: " + seen.Reason
	}
	if f.answers {
		f.status.SetAspect(SA, Sight, unreached)
	}
	if !f.status.SetAspect(SM, Sight, detail) {
		return
	}
	if detail == "" {
		f.log.Info("the subnet manager sees the fabric that it knows", "nodes", seen.Known)
		return
	}
	f.log.Error("the subnet manager does not see the fabric that it knows; nothing is withdrawn by itself", "state", seen.State, "reason", seen.Reason,
		"since", seen.Since, "nodes", seen.Nodes, "of", seen.Known, "ports", seen.Ports, "hosts", seen.Hosts, "names", seen.Names, "more", seen.More)
}
