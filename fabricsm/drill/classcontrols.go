package drill

import (
	"portcullis/fabricsm/drill/weak"
	"portcullis/fabricsm/sm"
)

// Controls of the keys of management classes.
const (
	CCKey           Control = "cc_key"
	VSKey           Control = "vs_key"
	N2NKey          Control = "n2n_key"
	ClassProtectBit Control = "class_protect_bit"
	LogSuppression  Control = "log_suppression"
	CounterWatch    Control = "counter_watch"
)

func classControls() []Carried {
	return []Carried{
		{
			CCKey, "every device has a CC_Key, and takes no settings of congestion control without it",
			[]string{"T53", "T57", "T58"},
			func(o *SiteOptions) { o.SM.ClassKeys.CC = sm.ClassKeyConfig{} },
		},
		{
			VSKey, "every device has a VS_Key, and shows no registers without it",
			[]string{"T54", "T57"},
			func(o *SiteOptions) { o.SM.ClassKeys.VS = sm.ClassKeyConfig{} },
		},
		{
			N2NKey, "every switch has a manager key and a node key, and believes no neighbour without them",
			[]string{"T55", "T57"},
			func(o *SiteOptions) { o.SM.ClassKeys.N2N = sm.ClassKeyConfig{} },
		},
		{
			ClassProtectBit, "no device shows its key of a class to who does not have it",
			[]string{"T53", "T54"},
			func(o *SiteOptions) {
				for _, c := range []*sm.ClassKeyConfig{&o.SM.ClassKeys.CC, &o.SM.ClassKeys.VS, &o.SM.ClassKeys.N2N} {
					c.Readable = true
				}
			},
		},
		{
			LogSuppression, "what repeats itself is reported at numbers 1, 2, 5, 10, 20, 50 and so on",
			[]string{"T58"},
			func(o *SiteOptions) { o.SM.Controls.Traps = weak.LogsAll{} },
		},
		{
			CounterWatch, "counters that go backwards are reported, and packets that mute switches refused",
			[]string{"T1", "T56"},
			func(o *SiteOptions) { o.SM.Counters = sm.CountersConfig{} },
		},
	}
}
