package lock

import (
	"context"
	"errors"

	"portcullis/agent/hca/register"
	"portcullis/firmware/nvconfig"
	"portcullis/firmware/nvconfig/profile"
)

// Settings reads the settings of the profile. A setting that could not be read is recorded as such in the readings; the
// profile judges it.
func (a *Adapter) Settings(ctx context.Context, p *profile.Profile) profile.Card {
	c := profile.Card{PSID: a.PSID, Ports: len(a.Ports), Functions: 1, Readings: []profile.Reading{}}
	for _, address := range p.Addresses(c) {
		c.Readings = append(c.Readings, a.setting(ctx, address))
	}
	return c
}

func (a *Adapter) setting(ctx context.Context, at nvconfig.Address) profile.Reading {
	r := profile.Reading{Address: at}
	known, err := read(ctx, a, register.MNVQC{Type: uint32(at)})
	if err == nil && known.CanWrite && !known.CanRead {
		err = errors.New("it can be written, but not read")
	}
	switch {
	case err != nil:
		r.Current = profile.Answer{State: profile.Failed, Problem: "whether it is supported: " + err.Error()}
		r.Next, r.Default = r.Current, r.Current
		return r
	case !known.CanRead:
		r.Support = profile.NotSupported
		return r
	}
	r.Support = profile.Supported
	r.Default, r.Current, r.Next = a.value(ctx, at, nvconfig.Default), a.value(ctx, at, nvconfig.Current), a.value(ctx, at, nvconfig.Next)
	return r
}

func (a *Adapter) value(ctx context.Context, at nvconfig.Address, mode nvconfig.Access) profile.Answer {
	layout, ok := nvconfig.LayoutOf(at)
	if !ok {
		return profile.Answer{State: profile.Failed, Problem: "its layout is not known"}
	}
	got, err := a.item(ctx, register.Read, nvconfig.Item{
		Header: nvconfig.Header{Access: mode, Address: at}, Data: make([]byte, layout.Size),
	})
	if err != nil {
		return profile.Answer{State: profile.Failed, Problem: err.Error()}
	}
	return profile.Answer{State: profile.Read, Item: got}
}

// bring brings the adapter to the profile: by the file, or item by item. The
// next reset makes it effective.
func (a *Adapter) bring(ctx context.Context, o *Order, c profile.Card) error {
	if o.File != nil {
		return a.apply(ctx, o.File)
	}
	items, left := o.Profile.Items(c, profile.PlainWrites)
	for _, l := range left {
		if r, ok := o.Profile.Rule(l.Parameter); ok && r.Need == profile.Required {
			return fail(CodeRefused, "take the adapter out of service, or remove the setting from the profile", "adapter %s: %s cannot be set: %s", a.Name, l.Parameter, l.Why)
		}
	}
	for _, i := range items {
		if stored(c, i) {
			continue
		}
		if _, err := a.item(ctx, register.Write, i); err != nil {
			if _, refused := errors.AsType[*register.Error](err); refused {
				return fail(CodeRefused, "the host is prevented from writing it: see portcullis-agent hca, and what locked the setting", "adapter %s: write %v: %w", a.Name, i.Address, err)
			}
			return fail(CodeUnreadable, "", "adapter %s: write %v: %w", a.Name, i.Address, err)
		}
	}
	return nil
}
