package query

import (
	"time"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sm/keymgr"
)

// OnKeys takes how far the keys of classes are. It does not block.
func (o *Observer) OnKeys(s *keymgr.Status) { o.classes.Store(s) }

// addClasses completes how keys stand by those of classes, if any are managed. A
// release has ended when that of all kinds has.
func addClasses(out *v1.FabricKeys, s *keymgr.Status, now time.Time) {
	if s == nil {
		return
	}
	for i := range s.Classes {
		c := &s.Classes[i]
		row := v1.ClassKeys{
			Kind: c.Kind.String(), Enable: c.Enable.String(),
			Settled: c.Settled, Working: c.Working, Absent: c.Absent, Failing: c.Failing, Single: c.Single,
		}
		for j := range s.Ages {
			if a := &s.Ages[j]; a.Kind == c.Kind || a.Kind == keys.N2NNodeKey && c.Kind == keys.N2NKey {
				row.Old++
				row.Oldest = max(row.Oldest, (a.Age + now.Sub(s.AgesAt)).Seconds())
			}
		}
		out.Classes = append(out.Classes, row)
	}
	if s.Releasing {
		out.Released = out.Released && s.Released
		out.Kept = s.Kept
	}
}
