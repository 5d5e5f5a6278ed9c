package records

import (
	"context"
	"errors"

	"portcullis/api/store"
)

// Standing is a grant and what was read back about it.
type Standing struct {
	Grant    Grant
	Modified int64 // revision of the grant's last change
	Found    Membership
}

// StandingOf reads the grant with a key, and what was read back about it. The error is store.ErrNotFound where there is no
// such grant.
func StandingOf(ctx context.Context, r store.Reader, k Key) (Standing, error) {
	g, err := Grants().Get(ctx, r, k.String())
	if err != nil {
		return Standing{}, err
	}
	m, err := Memberships().Get(ctx, r, k.String())
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return Standing{Grant: g.Value, Modified: g.Modified, Found: m.Value}, err
}

// Current reports whether what was found answers the grant as it stands now.
func (s Standing) Current(state MembershipState) bool {
	return s.Found.State == state && s.Found.Revision >= s.Modified
}

// Applied reports whether the membership was read back on switch port and HCA.
func (s Standing) Applied() bool { return !s.Grant.Withdrawn && s.Current(Applied) }

// Absent reports whether the switch port was read back without the P_Key.
func (s Standing) Absent() bool { return s.Grant.Withdrawn && s.Current(Removed) }

// Proven reports whether the HCA was, too. Only then nothing of the grant is left anywhere.
func (s Standing) Proven() bool { return s.Absent() && s.Found.HCAProven }
