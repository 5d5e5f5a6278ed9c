package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"portcullis/api/audit"
	"portcullis/api/audit/chain"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/refusal"
	"portcullis/api/review"
	"portcullis/api/store"
	"portcullis/api/tenancy"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// checkReview requires, while a restored state is in review, an operator's decision about a host to which anything would be
// granted that the fabric does not have.
func checkReview(f *facts) string {
	if f.review == nil || f.approved {
		return ""
	}
	if f.rec.Cluster != "" && !slices.ContainsFunc(f.memberships(), func(k records.Key) bool { s := f.grants[k]; return !s.Applied() }) {
		return ""
	}
	return fmt.Sprintf("the state is in review since %s: %s; the fabric does not have what it grants to this host; compare them with portcullis restore review, then approve or reject the host",
		f.review.Since.Format(time.RFC3339), f.review.From())
}

// gatherReview reads whether the state is in review, and whether the host was approved.
func (f *facts) gatherReview(ctx context.Context, r store.Reader) (err error) {
	if f.review, err = review.Current(ctx, r); err != nil || f.review == nil {
		return err
	}
	d, err := store.Optional(review.Decisions().Get(ctx, r, f.host.ID))
	f.approved = d.Approved
	return err
}

// comparison is what a review is about, as of one revision.
type comparison struct {
	mark      *review.Mark
	hosts     map[string]inventory.Host
	decisions map[string]review.Decision
	grants    map[records.Key]records.Grant
	found     []review.Found
	byPlace   map[ib.Place]*review.Found
	nodes     map[ib.GUID]string
	differ    []review.Difference
	agreed    int
}

func compareState(ctx context.Context, r store.Reader) (*comparison, error) {
	c := &comparison{
		hosts: map[string]inventory.Host{}, decisions: map[string]review.Decision{}, grants: map[records.Key]records.Grant{},
		byPlace: map[ib.Place]*review.Found{}, nodes: map[ib.GUID]string{},
	}
	var err error
	if c.mark, err = review.Current(ctx, r); err != nil || c.mark == nil {
		return c, err
	}
	hosts, _, err := inventory.Hosts().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	owner, places := map[ib.GUID]string{}, map[ib.Place]string{}
	for _, h := range hosts {
		c.hosts[h.Key] = h.Value
		for _, p := range h.Value.Ports() {
			owner[p.GUID], places[p.Cable] = h.Key, h.Key
		}
	}
	decisions, _, err := review.Decisions().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	for _, d := range decisions {
		c.decisions[d.Key] = d.Value
	}
	if err := c.readFabric(ctx, r); err != nil {
		return nil, err
	}
	wanted, err := c.wanted(ctx, r)
	if err != nil {
		return nil, err
	}
	seen, err := index(records.Ports().List(ctx, r, ""))
	if err != nil {
		return nil, err
	}
	c.differ, c.agreed = review.Compare(wanted, c.found,
		func(g ib.GUID, pl ib.Place) string {
			if h := owner[g]; h != "" || g != 0 {
				return h
			}
			return places[pl]
		},
		func(g ib.GUID, pl ib.Place) bool { return seen[g.String()].Value.Place == pl })
	return c, nil
}

func (c *comparison) readFabric(ctx context.Context, r store.Reader) error {
	tables, _, err := review.Tables().List(ctx, r, "")
	if err != nil {
		return err
	}
	for _, t := range tables {
		c.found = append(c.found, t.Value)
	}
	for i := range c.found {
		c.byPlace[c.found[i].Place] = &c.found[i]
	}
	nodes, _, err := records.Nodes().List(ctx, r, "")
	for _, n := range nodes {
		c.nodes[n.Value.GUID] = n.Value.Description
	}
	return err
}

func (c *comparison) wanted(ctx context.Context, r store.Reader) ([]review.Wanted, error) {
	grants, _, err := records.Grants().List(ctx, r, "")
	if err != nil {
		return nil, err
	}
	var out []review.Wanted
	for _, g := range grants {
		k, err := records.ParseKey(g.Key)
		if err != nil {
			return nil, err
		}
		c.grants[k] = g.Value
		if g.Value.Withdrawn {
			continue
		}
		out = append(out, review.Wanted{Host: g.Value.Host, GUID: k.GUID, Place: k.Place, PKey: formOf(k, &g.Value)})
	}
	return out, nil
}

// formOf returns the P_Key of a grant with its membership bit.
func formOf(k records.Key, g *records.Grant) ib.PKey {
	if g.Limited {
		return k.PKey.Limited()
	}
	return k.PKey.Full()
}

// leaving reports whether a difference is a membership that is withdrawn already, and not yet proven absent.
func (c *comparison) leaving(d *review.Difference) bool {
	return d.Kind == review.FabricOnly && c.grants[records.Key{PKey: d.PKey.Base(), GUID: d.GUID, Place: d.Place}].Withdrawn
}

// open lists the hosts with differences about which nothing was decided, sorted.
func (c *comparison) open() []string {
	hosts := map[string]bool{}
	for i := range c.differ {
		d := &c.differ[i]
		if _, decided := c.decisions[d.Host]; d.Host != "" && !decided && !c.leaving(d) {
			hosts[d.Host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// Approve has the restored state count for hosts: its grants are made, and other P_Keys that their switch ports have are
// taken off. Reject releases hosts and takes all P_Keys of tenants off.
func (s *Service) Approve(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error) {
	return s.decideReview(ctx, actor, in, true)
}

// Reject is described at Approve.
func (s *Service) Reject(ctx context.Context, actor string, in v1.ReviewDecision) (*v1.Review, error) {
	return s.decideReview(ctx, actor, in, false)
}

func (s *Service) decideReview(ctx context.Context, actor string, in v1.ReviewDecision, approve bool) (*v1.Review, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say what was found", "no reason given")
	}
	if in.All == (len(in.Hosts) > 0) {
		return nil, refusal.New(refusal.Invalid, "hosts_missing", "name hosts, or all", "want hosts or all, and one of them")
	}
	hosts := in.Hosts
	if in.All {
		c, _, err := s.compared(ctx)
		if err != nil {
			return nil, err
		}
		hosts = c.open()
	}
	action := "review.reject"
	if approve {
		action = "review.approve"
	}
	var problems []string
	for _, id := range hosts {
		err := s.update(ctx, func(tx *store.Tx) error { return s.decideHost(ctx, tx, actor, id, why, action, approve) })
		err = s.refusals.Note(ctx, audit.Change{Actor: actor, Action: action, Object: "host/" + refusal.Clip(id)}, err)
		if e, ok := errors.AsType[*refusal.Error](err); ok && len(hosts) > 1 && e.Status != refusal.Unavailable {
			problems = append(problems, e.Detail)
			continue
		}
		if err != nil {
			return nil, err
		}
	}
	if len(problems) > 0 {
		return nil, &refusal.Error{
			Code: "not_all_decided", Status: refusal.Conflict, Problems: problems, Hint: "decide about each of them by itself",
			Detail: fmt.Sprintf("%d of %d hosts were decided", len(hosts)-len(problems), len(hosts)),
		}
	}
	return s.Review(ctx)
}

// compareIn compares state and fabric as of a transaction. That the state is in review is a condition of its commit. The
// findings are not: the subnet manager may write them at any time, and a transaction has no room for all of them.
func compareIn(ctx context.Context, tx *store.Tx) (*comparison, error) {
	mark, err := review.Current(ctx, tx)
	if err != nil {
		return nil, err
	}
	if mark == nil {
		return nil, refusal.New(refusal.Conflict, "not_in_review", "", "the state is not in review")
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return compareState(ctx, snap)
}

// decideHost decides about one host.
func (s *Service) decideHost(ctx context.Context, tx *store.Tx, actor, id, why, action string, approve bool) error {
	c, err := compareIn(ctx, tx)
	if err != nil {
		return err
	}
	f, err := s.gather(ctx, tx, id)
	if err != nil {
		return err
	}
	if approve {
		if err := c.free(f); err != nil {
			return err
		}
	} else if f.rec.Cluster != "" {
		if err := s.release(ctx, tx, f, actor); err != nil {
			return err
		}
	} else if _, err := endAdopted(ctx, tx, f); err != nil {
		return err
	}
	if err := s.withdrawFound(ctx, tx, c, id); err != nil {
		return err
	}
	was, now := c.decisions[id], review.Decision{Approved: approve, Time: s.now(), Actor: actor, Reason: why}
	err = errors.Join(
		review.Decisions().Put(tx, id, now),
		s.log(ctx, tx, &audit.Change{Actor: actor, Action: action, Object: "host/" + id, Before: was, After: now, Detail: why}),
	)
	if err == nil {
		_, _, err = s.settle(ctx, tx, id)
	}
	return err
}

// free refuses to let a host into a partition whose P_Key another port has that no record explains: a cluster of later
// may have it.
func (c *comparison) free(f *facts) error {
	for _, k := range f.memberships() {
		for i := range c.differ {
			d := &c.differ[i]
			if f.rec.Cluster == "" || d.Kind != review.FabricOnly || d.PKey.Base() != k.PKey.Base() || d.Host == f.host.ID || c.leaving(d) {
				continue
			}
			who := d.Host
			if who == "" {
				who = "no host of the inventory"
			}
			return refusal.New(refusal.Conflict, "p_key_in_use", "find out whose P_Key it is now; reject that host, or end the review with strip, and assign this host then",
				"host %s is not approved: P_Key %v is also on switch port %v, of %s, which the restored state does not explain: another tenant may have it by now",
				f.host.ID, k.PKey, d.Place, who)
		}
	}
	return nil
}

// withdrawFound has what no record explains at a host's ports proven absent.
func (s *Service) withdrawFound(ctx context.Context, tx *store.Tx, c *comparison, id string) error {
	rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, id))
	if err != nil {
		return err
	}
	before := len(rec.Grants)
	for i := range c.differ {
		d := &c.differ[i]
		k := records.Key{PKey: d.PKey.Base(), GUID: d.GUID, Place: d.Place}
		if _, known := c.grants[k]; d.Kind != review.FabricOnly || d.Host != id || d.GUID == 0 || known {
			continue
		}
		g := records.Grant{Host: id, Limited: !d.PKey.IsFull(), Withdrawn: true, Since: s.now()}
		if err := records.Grants().Put(tx, k.String(), g); err != nil {
			return err
		}
		rec.Grants = insert(rec.Grants, k.String())
		if err := s.restPKey(ctx, tx, k.PKey); err != nil {
			return err
		}
	}
	if len(rec.Grants) == before {
		return nil
	}
	if rec.Phase == "" {
		rec.Phase, rec.Since = v1.PhaseQuarantined, s.now()
	}
	return hostrecord.Records().Put(tx, id, rec)
}

// restPKey has a P_Key that the state takes for free rest before its next use.
func (s *Service) restPKey(ctx context.Context, tx *store.Tx, k ib.PKey) error {
	rec, err := store.Optional(tenancy.PKeys().Get(ctx, tx, k.String()))
	if err != nil || rec.State != "" && rec.State != tenancy.PKeyAbsent {
		return err
	}
	return tenancy.PKeys().Put(tx, k.String(), tenancy.PKeyRecord{State: tenancy.PKeyAbsent, Cluster: rec.Cluster, Since: s.now()})
}

// EndReview ends the review, when every host with a difference was decided about.
func (s *Service) EndReview(ctx context.Context, actor string, in v1.ReviewEnd) (*v1.Review, error) {
	why := strings.TrimSpace(in.Reason)
	if why == "" {
		return nil, refusal.New(refusal.Invalid, "reason_missing", "say what was found", "no reason given")
	}
	err := s.update(ctx, func(tx *store.Tx) error { return s.endReview(ctx, tx, actor, why, in.Strip) })
	if err = s.refusals.Note(ctx, audit.Change{Actor: actor, Action: "review.end", Object: "state"}, err); err != nil {
		return nil, err
	}
	return s.Review(ctx)
}

func (s *Service) endReview(ctx context.Context, tx *store.Tx, actor, why string, strip bool) error {
	c, err := compareIn(ctx, tx)
	if err != nil {
		return err
	}
	if open := c.open(); len(open) > 0 {
		return &refusal.Error{
			Code: "review_open", Status: refusal.Conflict, Detail: fmt.Sprintf("%d hosts differ from the fabric, and nothing was decided about them", len(open)),
			Problems: open[:min(len(open), 20)], Hint: "portcullis restore review shows them; approve or reject each",
		}
	}
	var strange []string
	for i := range c.differ {
		d := &c.differ[i]
		if d.Kind != review.FabricOnly || c.leaving(d) {
			continue
		}
		strange = append(strange, fmt.Sprintf("P_Key %v at switch port %v", d.PKey, d.Place))
		if err := s.restPKey(ctx, tx, d.PKey.Base()); err != nil {
			return err
		}
	}
	if len(strange) > 0 && !strip {
		return &refusal.Error{
			Code: "review_strange", Status: refusal.Conflict, Detail: fmt.Sprintf("%d P_Keys of switch ports are explained by no record, and would be taken off", len(strange)),
			Problems: strange[:min(len(strange), 20)], Hint: "import the inventory of these hosts and decide about them, or end the review with strip",
		}
	}
	for id := range c.decisions {
		review.Decisions().Delete(tx, id)
	}
	review.Marks().Delete(tx, review.Key)
	if err := c.dropUnfound(s, tx); err != nil {
		return err
	}
	if c.mark.RolledBack != nil {
		// From here on the log counts as it is: it is not compared with anchors of earlier branches.
		if err := s.log(ctx, tx, &audit.Change{Actor: actor, Action: chain.BranchAction, Object: "state", Detail: why + "; " + c.mark.RolledBack.String()}); err != nil {
			return err
		}
	}
	return s.log(ctx, tx, &audit.Change{
		Actor: actor, Action: "review.end", Object: "state", Before: c.mark,
		Detail: fmt.Sprintf("%s; %d hosts decided, %d P_Keys that no record explains taken off", why, len(c.decisions), len(strange)),
	})
}
