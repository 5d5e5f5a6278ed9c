package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"portcullis/fabricsm/ib"
)

// readProofs reads the P_Key table of every HCA and of the switch
// port it is cabled to, by directed routes that need no subnet manager.
func (t *story) readProofs(ctx context.Context) ([]proof, error) {
	var out []proof
	for _, h := range t.hosts {
		want := wantedKeys(t.pkeys[t.member[h.id]])
		for _, a := range h.hcas {
			hcaKeys, err := t.reader.pkeys(ctx, toHCA(a), 0, t.mkeys[a.portGUID])
			if err != nil {
				return nil, err
			}
			portKeys, err := t.reader.pkeys(ctx, toLeaf(a.leaf), a.place.Port, t.mkeys[a.place.Switch])
			if err != nil {
				return nil, err
			}
			out = append(out,
				proof{what: "HCA " + a.node, found: hcaKeys, want: want},
				proof{what: fmt.Sprintf("switch port %s/%d", leafName(a.leaf), a.place.Port), found: portKeys, want: want})
		}
	}
	return out, nil
}

// prove reads all tables and fails unless each holds exactly
// what it must.
func (t *story) prove(ctx context.Context, claim string) error {
	proofs, err := t.readProofs(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	for _, p := range proofs {
		if !p.ok() {
			wrong = append(wrong, fmt.Sprintf("%s holds %v, must hold %v", p.what, p.found, p.want))
		}
	}
	t.proofs += len(proofs)
	if len(wrong) > 0 {
		return fmt.Errorf("not proven: %s\n  %s", claim, strings.Join(wrong, "\n  "))
	}
	t.say("proven by %s in %d tables: %s", t.reader.name(), len(proofs), claim)
	return nil
}

// conclude prints the final table from what is read.
func (t *story) conclude(ctx context.Context) error {
	t.chapter(fmt.Sprintf("At the end, read by %s", t.reader.name()))
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "HOST\tTENANT\tCLUSTER\tHCA\tP_KEYS OF THE HCA\tSWITCH PORT\tP_KEYS OF THE SWITCH PORT")
	proofs, err := t.readProofs(ctx)
	if err != nil {
		return err
	}
	for i, h := range t.hosts {
		for j, a := range h.hcas {
			p := proofs[(i*hcasPerHost+j)*2:]
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s/%d\t%s\n", h.id, t.tenant(h.id), t.member[h.id], a.portGUID,
				keyList(p[0].found), leafName(a.leaf), a.place.Port, keyList(p[1].found))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	t.raw(b.String())
	t.raw("\n")
	t.say("%d tables proven, none wrong, in %.1f s", t.proofs, t.elapsed().Seconds())
	return nil
}

func (t *story) tenant(id string) string {
	for _, c := range cast {
		if c.cluster == t.member[id] {
			return c.tenant
		}
	}
	return "-"
}

func keyList(keys []ib.PKey) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = k.String()
	}
	return strings.Join(s, " ")
}
