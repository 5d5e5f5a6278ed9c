package posture

import (
	"portcullis/api/profile"
	"portcullis/fabricsm/keys"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sm"
)

// facts collects what the Subnet Manager shows.
func (m *Manager) facts(f *profile.Facts) {
	core := m.Core()
	settings(f, &core)
	m.isolation(f)
	switch view, err := m.View(); {
	case err != nil:
		unseen(f, err.Error())
	default:
		fabric(f, view, &core)
	}
	answers, ok := m.Administration()
	if !ok {
		unanswered(f, "this instance does not answer hosts as subnet administration: fabric.sa.enabled is false, or no Subnet Manager was started yet")
		return
	}
	administration(f, &answers)
	set, err := m.SAKey()
	f.SAKey = now(f, profile.SAKey{Set: set, Rotation: answers.Trust.KeyPeriod}, "the SA_Key in force, and fabric.sa of the configuration in use")
	switch {
	case !answers.Key.IsZero():
		f.SAKey.Value = profile.SAKey{Set: true} // nothing changes a key of a file
		f.SAKey.Source = "fabric.sa.key_file of the configuration in use"
	case err != nil:
		f.SAKey.Missing = err.Error()
	}
}

// settings collects what the configuration of the Subnet Manager says.
func settings(f *profile.Facts, c *sm.Config) {
	f.SMKey = now(f, keys.Check(keys.New(c.SMKey.Reveal())) == nil, "fabric.sm_key_file of the configuration in use")
	f.AllowedSMs = now(f, len(c.Election.Allowed) > 0, "fabric.election.allowed_sms of the configuration in use")
	class := func(k *sm.ClassKeyConfig, name string) profile.Seen[profile.ClassKey] {
		v := profile.ClassKey{Enabled: k.Enable == sm.KeyEnabled, Protected: !k.Readable}
		return now(f, v, "fabric.keys."+name+"_key_enable of the configuration in use")
	}
	f.CCKey, f.VSKey, f.N2NKey = class(&c.ClassKeys.CC, "cc"), class(&c.ClassKeys.VS, "vs"), class(&c.ClassKeys.N2N, "n2n")
}

func unknownSettings(f *profile.Facts, why string) {
	f.SMKey.Missing, f.AllowedSMs.Missing, f.CCKey.Missing, f.VSKey.Missing, f.N2NKey.Missing = why, why, why, why, why
}

// administration collects how hosts are answered as subnet administration, but for the SA_Key.
func administration(f *profile.Facts, c *sa.Config) {
	const source = "fabric.sa of the configuration in use"
	t := &c.Trust
	f.SATrust = now(f, profile.SATrust{Enhanced: t.Model, SourceGIDs: t.CheckSGID}, source)
	f.SALimits = now(f, profile.SALimits{Groups: t.MaxGroups, Services: t.MaxServices, Subscriptions: t.MaxSubscriptions}, source)
	l := &c.Limiter
	f.MADLimits = now(f, profile.MADLimits{
		All:  l.Administration.All.Rate > 0 && l.Other.All.Rate > 0,
		Node: l.Administration.Node.Rate > 0 && l.Other.Node.Rate > 0,
	}, "fabric.sa.limits of the configuration in use")
}

func unanswered(f *profile.Facts, why string) {
	f.SAKey.Missing, f.SATrust.Missing, f.SALimits.Missing, f.MADLimits.Missing = why, why, why, why
}
