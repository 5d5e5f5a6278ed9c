package query

import (
	"context"
	"sort"

	v1 "portcullis/api/v1"
	"portcullis/fabricsm/sm/declared"
	"portcullis/fabricsm/topospec"
)

// Differing lists the switch ports at which the fabric is not as declared, by switch
// GUID and port.
func (o *Observer) Differing(_ context.Context, q v1.PageQuery) (*v1.Page[v1.TopospecPort], error) {
	x, at, err := o.asked(q.After)
	if err != nil {
		return nil, err
	}
	page, limit := pageOf[v1.TopospecPort](x), pageSize(q.Limit)
	if x.View.Topology == nil {
		return page, nil
	}
	rows := x.View.Topology.Ports
	if at.set {
		rows = rows[sort.Search(len(rows), func(i int) bool { return behind(rows[i].Place, at) }):]
	}
	for i := range rows {
		if i == limit {
			last := page.Items[i-1].Place
			page.Next = position{guid: last.Switch, port: last.Port}.String()
			break
		}
		page.Items = append(page.Items, o.differing(x, &rows[i]))
	}
	return page, nil
}

func (o *Observer) differing(x *index, t *declared.TopologyPort) v1.TopospecPort {
	end := func(e topospec.End) string {
		if e.IsZero() {
			return ""
		}
		return e.String()
	}
	row := v1.TopospecPort{
		Place: t.Place, At: x.placeName(t.Place), State: t.State.String(), Verdict: t.Verdict.String(), Action: t.Action.String(),
		Would: t.Would.String(), Where: t.Where, Cable: t.Cable, Seen: end(t.Seen), Expected: end(t.Expected), Belongs: end(t.Belongs),
		Page: t.Page, Since: t.Since, Text: t.Text,
	}
	row.Host, row.Tenant = o.OwnerAt(t.Place, t.Seen.GUID)
	return row
}
