package query

import (
	"encoding/base64"
	"encoding/binary"
	"sort"

	"portcullis/api/refusal"
	v1 "portcullis/api/v1"
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/topo"
)

// defaultPage is the size of a page when none is asked for.
const defaultPage = 1000

// position is where a page of nodes or ports begins: behind this one. Ids stay
// with their nodes, so a position holds from one view to the next.
type position struct {
	guid ib.GUID
	node topo.NodeID
	port ib.PortNum
	set  bool
}

func badCursor() error {
	return &refusal.Error{
		Code: v1.CodeCursor, Status: refusal.Invalid,
		Detail: "the value of after is not one that a page returned as next", Hint: "begin without after",
	}
}

func parsePosition(s string) (p position, err error) {
	if s == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 13 {
		return p, badCursor()
	}
	return position{
		guid: ib.GUID(binary.BigEndian.Uint64(b)), node: topo.NodeID(int32(binary.BigEndian.Uint32(b[8:]))),
		port: ib.PortNum(b[12]), set: true,
	}, nil
}

func (p position) String() string {
	var b [13]byte
	binary.BigEndian.PutUint64(b[:], uint64(p.guid))
	binary.BigEndian.PutUint32(b[8:], uint32(p.node))
	b[12] = byte(p.port)
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// from returns the nodes at or behind a position, in the order of (GUID, id).
func from(f *topo.Fabric, p position) []topo.NodeID {
	all := f.ByGUID()
	if !p.set {
		return all
	}
	i := sort.Search(len(all), func(i int) bool {
		g := f.Node(all[i]).GUID
		return g > p.guid || g == p.guid && all[i] >= p.node
	})
	return all[i:]
}

func pageOf[T any](x *index) *v1.Page[T] {
	return &v1.Page[T]{Observed: x.Time.UTC(), Settled: x.Settled, Items: []T{}}
}

func pageSize(limit int) int {
	if limit <= 0 {
		return defaultPage
	}
	return min(limit, v1.MaxPage)
}
