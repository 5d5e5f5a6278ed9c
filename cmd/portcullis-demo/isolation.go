package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "portcullis/api/v1"
	"portcullis/cmd/internal/program"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/mad"
	"portcullis/fabricsm/transport"
	"portcullis/fabricsm/transport/ibsim"
)

// strayEntry is the entry of P_Key tables that is planted. The Subnet Manager uses the first few.
const strayEntry = 20

// isolation proves isolation by the service's own command, plants a leak behind the back of the Subnet Manager, has it found,
// and heals it. Only our own simulator has switches that enforce.
func (t *story) isolation(ctx context.Context) error {
	if _, ok := t.lab.(*ownLab); !ok {
		return nil
	}
	t.chapter("Isolation, proven, broken and proven again")
	if err := t.isolated(ctx); err != nil {
		return err
	}
	if err := t.receipt(ctx, 0, v1.Isolated); err != nil {
		return err
	}
	intruder, victim := t.hosts[0], t.hosts[hostCount-1]
	key := t.pkeys[t.member[victim.id]].Full()
	a := intruder.hcas[0]
	if err := t.plant(ctx, a, key); err != nil {
		return err
	}
	t.say("planted: %v of %s is written into the P_Key tables of %s and of %s port %d, with their M_Keys and behind the back of the Subnet Manager",
		key, t.tenant(victim.id), a.node, leafName(a.leaf), a.place.Port)
	got, err := t.lab.(*ownLab).send(ctx, a.node, victim.hcas[0].node, key)
	if err != nil {
		return err
	}
	if !strings.HasSuffix(got, ": delivered") {
		return fmt.Errorf("the planted leak leaks nothing: %q", got)
	}
	t.say("%s sends to %s: %s", intruder.id, victim.id, got)
	if err := t.leaks(ctx, key); err != nil {
		return err
	}
	if err := t.receipt(ctx, 1, v1.Leaks); err != nil {
		return err
	}
	if err := t.plant(ctx, a, 0); err != nil {
		return err
	}
	t.say("both entries are removed again")
	return t.isolated(ctx)
}

// receipt has a receipt issued about the first tenant, and verifies it with the published key and without the service.
func (t *story) receipt(ctx context.Context, status int, verdict string) error {
	tenant := cast[0].tenant
	file, keys := t.path("receipt-"+verdict+".json"), t.path("receipts.pem")
	if _, err := t.cli(ctx, "receipt", "issue", "--tenant", tenant, "--out", file); err != nil {
		return err
	}
	public, err := t.cli(ctx, "receipt", "keys", "--pem")
	if err != nil {
		return err
	}
	if err := t.write("receipts.pem", string(public)); err != nil {
		return err
	}
	out, err := t.offline(ctx, "receipt", "verify", file, "--key", keys, "--tenant", tenant, "-o", "json")
	got := 0
	if e, ok := errors.AsType[*program.StatusError](err); ok && len(out) > 0 {
		got, err = e.Status, nil
	}
	var said struct {
		Until     time.Time `json:"until"`
		Predicate struct {
			Verdict string `json:"verdict"`
			Reading struct {
				Digest string `json:"digest"`
			} `json:"reading"`
		} `json:"predicate"`
	}
	if err == nil {
		err = json.Unmarshal(out, &said)
	}
	if err != nil {
		return fmt.Errorf("portcullis receipt verify: %w", err)
	}
	if got != status || said.Predicate.Verdict != verdict {
		return fmt.Errorf("portcullis receipt verify ends with status %d: %s, want %d: %s", got, said.Predicate.Verdict, status, verdict)
	}
	t.say("portcullis receipt verify, without the service: tenant %s: %s, tables %.16s..., counts until %s", tenant, verdict, said.Predicate.Reading.Digest, said.Until.Format(time.RFC3339))
	return nil
}

// verify runs "portcullis verify", and returns its result and its exit status.
func (t *story) verify(ctx context.Context) (*v1.Isolation, int, error) {
	status := 0
	out, err := t.cli(ctx, "verify", "-o", "json")
	if e, ok := errors.AsType[*program.StatusError](err); ok && len(out) > 0 {
		status, err = e.Status, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var got v1.Isolation
	if err := json.Unmarshal(out, &got); err != nil {
		return nil, 0, fmt.Errorf("portcullis verify: %w in %q", err, out)
	}
	return &got, status, nil
}

func (t *story) isolated(ctx context.Context) error {
	got, status, err := t.verify(ctx)
	if err != nil {
		return err
	}
	if got.Verdict != v1.Isolated || status != 0 || got.Pairs.Isolated == 0 {
		return fmt.Errorf("portcullis verify ends with status %d: %s: %s, %+v", status, got.Verdict, got.Reason, got.Examples)
	}
	b := got.Bounds
	t.say("portcullis verify: no packet passes between %s and %s: %d devices, %d requests, each table read twice, in %.1f s",
		cast[0].tenant, cast[1].tenant, b.Devices, b.Requests, b.Ended.Sub(b.Begun).Seconds())
	return nil
}

// leaks demands that the leak is found, and shows it as operators see it.
func (t *story) leaks(ctx context.Context, key ib.PKey) error {
	got, status, err := t.verify(ctx)
	if err != nil {
		return err
	}
	if got.Verdict != v1.Leaks || status != 1 || len(got.Examples) == 0 || got.Examples[0].PKey.Base() != key.Base() {
		return fmt.Errorf("the planted leak was not found: portcullis verify ends with status %d: %s, %+v", status, got.Verdict, got.Examples)
	}
	e := got.Examples[0]
	t.say("portcullis verify finds it, and ends with status %d: a packet with P_Key %v passes from %s to %s:", status, e.PKey, e.From, e.To)
	for i, h := range e.Hops {
		t.say("  %d. %s: %s", i+1, h.Device, strings.Join(h.Passed, "; "))
	}
	t.say("  cure: %s", e.Cure)
	return nil
}

// plant writes a P_Key into the tables of an HCA and of its switch port, past the Subnet Manager.
func (t *story) plant(ctx context.Context, a hca, key ib.PKey) error {
	for _, table := range []struct {
		route string
		mod   uint32
		mkey  ib.MKey
	}{
		{toHCA(a), 0, t.mkeys[a.portGUID]},
		{toLeaf(a.leaf), mad.PKeyTableMod(a.place.Port, 0), t.mkeys[a.place.Switch]},
	} {
		if err := writePKey(ctx, t.lab.Client().Socket, table.route, table.mod, table.mkey, key); err != nil {
			return fmt.Errorf("plant a P_Key at %s: %w", table.route, err)
		}
	}
	return nil
}

// writePKey changes one entry of a P_Key table by directed route.
func writePKey(ctx context.Context, socket, route string, mod uint32, mkey ib.MKey, key ib.PKey) error {
	hops, err := parseRoute(route)
	if err != nil {
		return err
	}
	port, err := ibsim.Dial(ctx, ibsim.Options{Socket: socket, Node: smNodeName})
	if err != nil {
		return err
	}
	defer port.Close()
	timer := time.AfterFunc(answerTimeout, func() { _ = port.Close() })
	defer timer.Stop()
	defer context.AfterFunc(ctx, func() { _ = port.Close() })()
	var table mad.PKeyTable
	if err := get(port, hops, mkey, mad.AttrPKeyTable, mod, &table); err != nil {
		return err
	}
	table.PKey[strayEntry] = key
	ask := []transport.Packet{{LID: ib.PermissiveLID}}
	mad.NewSMP(&ask[0].MAD, mad.Header{Method: mad.MethodSet, TID: 2, Attr: mad.AttrPKeyTable, Mod: mod}, &hops, mkey)
	mad.MustEncode(ask[0].MAD.Data(), &table)
	if _, err := port.Send(ask); err != nil {
		return err
	}
	answer := make([]transport.Packet, 1)
	if _, err := port.Receive(answer); err != nil {
		return err
	}
	if m := &answer[0].MAD; answer[0].Undelivered || m.Status() != mad.StatusOK {
		return fmt.Errorf("the table is not written: %v", m.Status())
	}
	return nil
}
