package drill

import "portcullis/fabricsm/sa"

// Controls of subnet administration.
const (
	PathPartitions Control = "path_partitions"
	SAKeyCheck     Control = "sa_key"
	SGIDCheck      Control = "sgid_check"
)

func administrationControls() []Carried {
	return []Carried{
		{
			PathPartitions, "a path is told to who shares a partition with both of its ends; what others have does not exist",
			[]string{"T69"},
			weakSA(func(c *sa.Config) { c.Weakness.SeesPath = true }),
		},
		{
			SAKeyCheck, "who shows an SA_Key that is none of ours is not answered",
			[]string{"T72"},
			weakSA(func(c *sa.Config) { c.Weakness.AnyKey = true }),
		},
		{
			SGIDCheck, "a source GID that is not that of the port with the source LID is dropped",
			[]string{"T74"},
			weakSA(func(c *sa.Config) { c.Trust.CheckSGID = false }),
		},
	}
}

// weakSA switches a control off that subnet administration has.
func weakSA(change func(*sa.Config)) func(*SiteOptions) {
	return func(o *SiteOptions) {
		if o.SA != nil {
			change(o.SA)
		}
	}
}
