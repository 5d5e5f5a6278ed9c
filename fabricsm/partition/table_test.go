package partition

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func TestArrange(t *testing.T) {
	const def = ib.DefaultPKeyLimited
	tests := []struct {
		name     string
		current  Table
		capacity int
		keys     []ib.PKey
		want     Table
	}{
		{"nothing wanted", Table{0xffff}, 8, nil, Table{def}},
		{"never read", nil, 8, []ib.PKey{0x8001, 0x8002}, Table{def, 0x8001, 0x8002}},
		{"keys stay", Table{def, 0, 0x8002, 0x8001}, 8, []ib.PKey{0x8001, 0x8002}, Table{def, 0, 0x8002, 0x8001}},
		{"foreign key goes", Table{def, 0x8666, 0x8001}, 8, []ib.PKey{0x8001}, Table{def, 0, 0x8001}},
		{"new key behind the last", Table{def, 0x8001, 0, 0x8003}, 8, []ib.PKey{0x8001, 0x8002, 0x8003}, Table{def, 0x8001, 0, 0x8003, 0x8002}},
		{"then empty ones", Table{def, 0x8001, 0, 0x8003}, 4, []ib.PKey{0x8001, 0x8002, 0x8003}, Table{def, 0x8001, 0x8002, 0x8003}},
		{"freed ones last", Table{def, 0x8666, 0, 0x8003}, 4, []ib.PKey{0x8001, 0x8002, 0x8003}, Table{def, 0x8002, 0x8001, 0x8003}},
		{"freed top is not reused at once", Table{def, 0x8666}, 8, []ib.PKey{0x8001}, Table{def, 0, 0x8001}},
		{"membership changes in place", Table{def, 0x0001}, 8, []ib.PKey{0x8001}, Table{def, 0x8001}},
		{"full and limited become one", Table{def, 0x0001, 0x8001}, 8, []ib.PKey{0x8001}, Table{def, 0x8001}},
		{"tenant key at index 0 gives way", Table{0x8001, def}, 8, []ib.PKey{0x8001}, Table{def, 0, 0x8001}},
		{"beyond the capacity", Table{def, 0, 0, 0, 0x8001}, 4, []ib.PKey{0x8001}, Table{def, 0x8001}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(arrange(tt.current, tt.capacity, def, tt.keys), tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestBlocks(t *testing.T) {
	long := make(Table, 70)
	long[0], long[69] = 0x7fff, 0x8001
	tests := []struct {
		name       string
		want, have Table
		nums       []uint16
	}{
		{"equal", Table{0x7fff}, Table{0x7fff, 0, 0}, nil},
		{"key to clear behind the end", Table{0x7fff}, Table{0x7fff, 0x8001}, []uint16{0}},
		{"third block only", long, Table{0x7fff}, []uint16{2}},
		{"third block to clear", Table{0x7fff}, long, []uint16{2}},
		{"never read", long, nil, []uint16{0, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			blocks := Blocks(tt.want, tt.have)
			var nums []uint16
			got := make(Table, max(96, len(tt.have)))
			copy(got, tt.have)
			for _, b := range blocks {
				nums = append(nums, b.Num)
				copy(got[int(b.Num)*BlockSize:], b.PKeys[:])
			}
			if d := cmp.Diff(nums, tt.nums); d != "" {
				t.Errorf("block numbers (-got +want):\n%s", d)
			}
			if d := cmp.Diff(trim(got), tt.want); d != "" {
				t.Errorf("table after writing (-got +want):\n%s", d)
			}
		})
	}
}
