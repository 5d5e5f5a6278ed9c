package register

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"portcullis/api/audit"
	"portcullis/api/fabric/records"
	"portcullis/api/hostrecord"
	"portcullis/api/inventory"
	"portcullis/api/inventory/source"
	"portcullis/api/refusal"
	"portcullis/api/store"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
)

// ImportInventory takes the files into the inventory, all or nothing, in one
// transaction; in a dry run it only reports what it would do. EK, GUIDs and
// cabling of a host that holds or is losing a grant cannot be changed: release
// it first. If they change on a host that has merely attested, its evidence is
// void. Rows that need two persons (Repair) are staged under the ticket t, and the
// rest is taken.
func (s *Service) ImportInventory(ctx context.Context, actor string, files []inventory.File, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	declared, err := source.Parse(files, s.o.Manifests)
	if err != nil {
		return nil, invalidInventory(err)
	}
	var report *v1.ImportReport
	rev, err := s.o.Store.Update(ctx, func(tx *store.Tx) error {
		plan, rows, err := s.plan(ctx, tx, declared, actor, t, dryRun)
		if err != nil {
			return err
		}
		if report, err = s.importReport(ctx, tx, plan, rows, dryRun); err != nil {
			return err
		}
		snap, err := tx.Snapshot(ctx)
		if err != nil {
			return err
		}
		if report.Warnings, err = s.cablingWarnings(ctx, snap, plan); err != nil {
			return err
		}
		fresh := slices.ContainsFunc(rows, func(r staged) bool { return r.fresh })
		if dryRun || !fresh && plan.Empty() {
			return nil
		}
		return errors.Join(s.putStaged(ctx, tx, rows), s.importPlan(ctx, tx, actor, files, plan))
	})
	if err != nil {
		return nil, refusal.Explain(err)
	}
	report.Revision = rev
	return report, nil
}

func invalidInventory(err error) error {
	var ps inventory.Problems
	if !errors.As(err, &ps) {
		return err
	}
	return &refusal.Error{
		Code: "inventory_invalid", Status: refusal.Invalid, Problems: ps.Lines(), Err: err,
		Detail: fmt.Sprintf("problems in inventory files: %d; nothing was imported", len(ps)),
		Hint:   "correct them and import all files again",
	}
}

// plan compares the files with the whole inventory, and returns the plan to apply and the rows to stage. Reading the head
// through tx makes it conflict with every other import, so that what it found unique stays unique.
func (s *Service) plan(ctx context.Context, tx *store.Tx, d *inventory.Declaration, actor string, t v1.RepairTicket, dryRun bool) (*inventory.Plan, []staged, error) {
	if _, err := store.Optional(inventory.Heads().Get(ctx, tx, inventory.HeadKey)); err != nil {
		return nil, nil, err
	}
	snap, err := tx.Snapshot(ctx)
	if err != nil {
		return nil, nil, err
	}
	stored, err := inventory.Load(ctx, snap)
	if err != nil {
		return nil, nil, err
	}
	plan, err := inventory.NewPlan(stored, d)
	if err != nil {
		return nil, nil, invalidInventory(err)
	}
	if err := s.comeBack(ctx, tx, plan.Added); err != nil {
		return nil, nil, err
	}
	rows, err := s.stage(ctx, tx, plan, actor, t, dryRun)
	if err != nil {
		return nil, nil, err
	}
	if len(rows) > 0 {
		if plan, err = setAside(plan, rows); err != nil {
			return nil, nil, err
		}
	}
	grants, _, err := records.Grants().List(ctx, snap, "")
	if err != nil {
		return nil, nil, err
	}
	return plan, rows, s.refuseLocked(ctx, tx, plan, grants)
}

// refuseLocked refuses to change the identity of hosts that hold grants. It also refuses to move to another host a port or
// a place that a grant still names.
func (s *Service) refuseLocked(ctx context.Context, tx *store.Tx, p *inventory.Plan, grants []store.Record[records.Grant]) error {
	problems, err := stillGranted(p, grants)
	if err != nil {
		return err
	}
	for _, c := range p.Changed {
		if !c.Identity {
			continue
		}
		rec, err := store.Optional(hostrecord.Records().Get(ctx, tx, c.After.ID))
		if err != nil {
			return err
		}
		if phase := hostrecord.PhaseOf(rec); rec.Granted || phase == v1.PhaseReleasing {
			problems = append(problems, fmt.Sprintf("host %s is %s: %s", c.After.ID, phase, c.Fields[0]))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return &refusal.Error{
		Code: "host_locked", Status: refusal.Conflict, Problems: problems,
		Detail: "these changes concern grants that are not proven gone; nothing was imported",
		Hint:   "release these hosts first, and import again when they are quarantined and their adapters have answered",
	}
}

// stillGranted lists the grants whose port or place the plan moves to another host. A quarantined host has its switch ports
// proven clear, but not its adapters: two hosts would have one grant. The grants need not be conditions of the import: a
// host gets one only where its inventory says, and the hosts that lose a port by the plan are.
func stillGranted(p *inventory.Plan, grants []store.Record[records.Grant]) ([]string, error) {
	ports, places, cables := map[ib.GUID]string{}, map[ib.Place]string{}, map[ib.GUID]ib.Place{}
	claim := func(h *inventory.Host) {
		for _, port := range h.Ports() {
			ports[port.GUID], places[port.Cable], cables[port.GUID] = h.ID, h.ID, port.Cable
		}
	}
	for i := range p.Added {
		claim(&p.Added[i])
	}
	for i := range p.Changed {
		if p.Changed[i].Identity {
			claim(&p.Changed[i].After)
		}
	}
	var problems []string
	for _, g := range grants {
		k, err := records.ParseKey(g.Key)
		if err != nil {
			return nil, err
		}
		if g.Value.Adopted != "" {
			if host := cmp.Or(ports[k.GUID], places[k.Place]); host != "" && cables[k.GUID] != k.Place {
				problems = append(problems, fmt.Sprintf("host %s: port %v is adopted with P_Key %v at %v (%s), and the inventory would have another port there, or this one elsewhere: end its adoption first",
					host, k.GUID, k.PKey, k.Place, g.Value.Adopted))
			}
			continue
		}
		owner := g.Value.Host
		if to, claimed := ports[k.GUID]; claimed && to != owner {
			problems = append(problems, fmt.Sprintf("host %s: port %v is not yet proven without P_Key %v, which host %s was granted", to, k.GUID, k.PKey, owner))
		} else if to, claimed := places[k.Place]; claimed && to != owner {
			problems = append(problems, fmt.Sprintf("host %s: the port %v that was at %v is not yet proven without P_Key %v, which host %s was granted", to, k.GUID, k.Place, k.PKey, owner))
		}
	}
	return problems, nil
}

func (s *Service) importPlan(ctx context.Context, tx *store.Tx, actor string, files []inventory.File, p *inventory.Plan) error {
	for _, h := range p.Added {
		if err := inventory.Hosts().Put(tx, h.ID, h); err != nil {
			return err
		}
	}
	for _, c := range p.Changed {
		if err := inventory.Hosts().Put(tx, c.After.ID, c.After); err != nil {
			return err
		}
		if c.Identity {
			if err := s.o.Admission.Void(ctx, tx, c.After.ID); err != nil {
				return err
			}
		}
	}
	head := inventory.Head{Imported: s.now(), Actor: actor, Hosts: p.Total}
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, refusal.Clip(f.Name))
	}
	if err := inventory.Heads().Put(tx, inventory.HeadKey, head); err != nil || p.Empty() {
		return err
	}
	after, equipment := []any{p.Added, p.Changed}, ""
	if things := p.Things(); len(things) > 0 {
		after = append(after, p.Sites, p.Racks, p.Switches, p.Adapters, p.Trunks)
		equipment = fmt.Sprintf(", and %d other objects", len(things))
	}
	return errors.Join(
		putEquipment(tx, p),
		s.log(ctx, tx, &audit.Change{
			Actor: actor, Action: "inventory.import", Object: "inventory", After: after,
			Detail: fmt.Sprintf("%d hosts added, %d changed%s, from %s", len(p.Added), len(p.Changed), equipment, refusal.Some(names)),
		}),
	)
}

func (s *Service) importReport(ctx context.Context, tx *store.Tx, p *inventory.Plan, rows []staged, dryRun bool) (*v1.ImportReport, error) {
	r := &v1.ImportReport{
		DryRun: dryRun, Added: []string{}, Changed: []v1.HostChange{}, Staged: []v1.Repair{},
		Unchanged: p.Unchanged, NotInFile: append([]string{}, p.NotInFile...), Equipment: []v1.EquipmentChange{}, LeftOut: p.LeftOut,
	}
	for _, c := range p.Things() {
		r.Equipment = append(r.Equipment, v1.EquipmentChange{Kind: string(c.Kind), What: c.What, Object: c.ID, Fields: c.Fields})
	}
	l := p.Locator()
	for _, h := range p.Added {
		r.Added = append(r.Added, h.ID)
	}
	for _, c := range p.Changed {
		r.Changed = append(r.Changed, v1.HostChange{Host: c.After.ID, Where: l.Device(c.After.ID, c.After.Position), Fields: slices.Clone(c.Fields)})
	}
	for i := range rows {
		v, err := s.repairView(ctx, tx, &rows[i].repair)
		if err != nil {
			return nil, err
		}
		r.Staged = append(r.Staged, *v)
	}
	return r, nil
}
