package apitest

import (
	"context"
	"slices"
	"strings"
	"time"

	"portcullis/api/inventory"
	"portcullis/api/page"
	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
)

// ImportInventory implements api.Backend: each file is a list of host ids, a
// line each; a line with a space in it is a problem, and one that ends in ? has a warning. One with an EK, HOST=EK, needs two
// persons.
func (b *Backend) ImportInventory(_ context.Context, actor string, files []inventory.File, t v1.RepairTicket, dryRun bool) (*v1.ImportReport, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	bad := &refusal.Error{
		Code: "inventory_invalid", Status: refusal.Invalid, Detail: "the files are not an inventory",
		Hint: "nothing was changed; correct the files and import them again",
	}
	report := &v1.ImportReport{DryRun: dryRun, Added: []string{}, Changed: []v1.HostChange{}, NotInFile: []string{}, Staged: []v1.Repair{}, Warnings: []string{}}
	for _, f := range files {
		for id := range strings.Lines(string(f.Data)) {
			id = strings.TrimSuffix(id, "\n")
			if strings.Contains(id, " ") {
				bad.Problems = append(bad.Problems, f.Name+": host "+id+": want no spaces")
			}
			if sure, doubtful := strings.CutSuffix(id, "?"); doubtful {
				id = sure
				report.Warnings = append(report.Warnings, f.Name+": host "+id+": the cable leads nowhere")
			}
			host, ek, another := strings.Cut(id, "=")
			if !another {
				report.Added = append(report.Added, id)
				continue
			}
			report.Staged = append(report.Staged, v1.Repair{
				Host: host, Ticket: t.Ticket, Reason: t.Reason, By: actor, EKWas: b.hosts[host].EK, EK: ek,
				Fields: []string{"ek_sha256: was " + b.hosts[host].EK + ", now " + ek}, Digest: strings.Repeat("5e", 32),
			})
		}
	}
	if bad.Problems != nil {
		return nil, bad
	}
	if len(report.Staged) > 0 && t.Ticket == "" && !dryRun {
		return nil, conflict("repair_needed", "that a host has another TPM is for two persons to say; nothing was imported", "give a ticket")
	}
	if !dryRun {
		for _, r := range report.Staged {
			b.repairs[r.Host] = r
		}
		for _, id := range report.Added {
			b.hosts[id] = v1.Host{ID: id, HCAs: []v1.HCA{}, Status: v1.HostStatus{Phase: v1.PhaseQuarantined, Guards: []v1.Guard{}}}
		}
		report.Revision = 7
	}
	return report, nil
}

// RemoveEquipment implements api.Backend: there is none.
func (*Backend) RemoveEquipment(_ context.Context, _ string, kind inventory.Kind, id string, _ v1.HostRemoval) error {
	return notFound(string(kind), id)
}

// Repairs implements api.Backend.
func (b *Backend) Repairs(_ context.Context, q v1.PageQuery) (*v1.List[v1.Repair], error) {
	return paged(b, "repairs", q, b.repairs, func(r v1.Repair) string { return r.Host })
}

// Repair implements api.Backend.
func (b *Backend) Repair(_ context.Context, host string) (*v1.Repair, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r, there := b.repairs[host]
	if !there {
		return nil, notFound("repair", host)
	}
	return &r, nil
}

// ConfirmRepair implements api.Backend.
func (b *Backend) ConfirmRepair(ctx context.Context, actor, host string, in v1.RepairConfirm) (*v1.Repair, error) {
	r, err := b.Repair(ctx, host)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(r.Digest, in.Digest) {
		return nil, conflict("repair_changed", "the change of host "+host+" is another one", "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denied = append(b.denied, v1.DeniedEK{EK: r.EKWas, Host: host, Ticket: r.Ticket, By: actor})
	b.endRepair(host)
	return r, nil
}

// CancelRepair implements api.Backend.
func (b *Backend) CancelRepair(ctx context.Context, _, host string, _ v1.RepairCancel) (*v1.Repair, error) {
	r, err := b.Repair(ctx, host)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.endRepair(host)
	return r, nil
}

func (b *Backend) endRepair(host string) {
	delete(b.repairs, host)
}

// DeniedEKs implements api.Backend.
func (b *Backend) DeniedEKs(_ context.Context, q v1.PageQuery) (*v1.List[v1.DeniedEK], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return page.Newest("denied", q, slices.Clone(b.denied), func(d *v1.DeniedEK) (time.Time, string) { return d.Time, d.EK })
}
