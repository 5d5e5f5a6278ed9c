package main

import (
	"context"
	"fmt"
	"strings"

	"portcullis/fabricsm/ib"
)

// packets shows by data packets what the tables are for. Only our own simulator
// carries any.
func (t *story) packets(ctx context.Context) error {
	l, ok := t.lab.(*ownLab)
	if !ok {
		return nil
	}
	t.chapter("Data packets, and what becomes of them")
	sender, friend, other := t.hosts[0], t.hosts[1], t.hosts[hostCount-1]
	own, foreign := t.pkeys[t.member[sender.id]].Full(), t.pkeys[t.member[other.id]].Full()
	gate := fmt.Sprintf("%s port %d: P_Key refused inbound", leafName(0), sender.hcas[0].place.Port)
	for _, p := range []struct {
		to   host
		key  ib.PKey
		want string // how the answer ends
		what string
	}{
		{friend, own, ": delivered", "with the P_Key of both"},
		{other, own, ": P_Key refused outbound", "with its own P_Key"},
		{other, foreign, gate, "with the P_Key of the other, from a driver that root has changed"},
		{other, ib.DefaultPKeyLimited, ": P_Key refused outbound", "over the default partition, where both are limited members"},
		{other, ib.DefaultPKeyFull, gate, "over the default partition, claiming to be a full member"},
	} {
		got, err := l.send(ctx, sender.hcas[0].node, p.to.hcas[0].node, p.key)
		if err != nil {
			return err
		}
		if !strings.HasSuffix(got, p.want) {
			return fmt.Errorf("not proven: %s sends to %s %s: %q, must end with %q", sender.id, p.to.id, p.what, got, p.want)
		}
		t.say("%s to %s %s: %s", sender.id, p.to.id, p.what, got)
	}
	return nil
}
