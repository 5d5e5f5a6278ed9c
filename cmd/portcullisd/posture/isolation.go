package posture

import (
	"portcullis/api/isolation/standing"
	"portcullis/api/profile"
	v1 "portcullis/api/v1"
)

// isolation collects what the newest examination of all tenants found, which the instance that leads keeps.
func (m *Manager) isolation(f *profile.Facts) {
	s, known := m.Standing()
	switch {
	case !known:
		f.Isolation.Missing = "this instance does not lead, or has not read what earlier leaders found"
		return
	case s.Examined.IsZero():
		f.Isolation.Missing = "no examination of all tenants has a result yet"
		return
	}
	f.Isolation = profile.Seen[profile.Isolation]{Value: found(&s), Source: "the newest examination of all tenants that the service recorded", At: s.Examined}
}

func found(s *standing.Standing) profile.Isolation {
	out := profile.Isolation{Begun: s.Examined, MaxAge: s.MaxAge}
	switch s.Verdict {
	case v1.Isolated:
		out.Verdict = profile.Isolated
	case v1.Leaks:
		out.Verdict, out.Why = profile.Leaks, s.Reason
	default:
		out.Why = s.Reason
	}
	return out
}
