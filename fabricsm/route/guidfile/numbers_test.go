package guidfile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/fabricsm/ib"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseNumbers(t *testing.T) {
	tests := []struct {
		name, data string
		want       map[ib.GUID]int
		err        string
	}{
		{"one a line", "0x1 7\n\n0x2\t0 # first\r\n", map[ib.GUID]int{1: 7, 2: 0}, ""},
		{"nothing", "# none", nil, "ids: lists no GUID; write one a line"},
		{"wrong", "0x1\n0x2 x\n0x3 -1\n0x4 1 2\n0x5 9\n0x5 9\nleaf 3\n", nil, "ids:1: want a GUID and a number\n" +
			"ids:2: \"x\": want a number from 0 to 2147483647\nids:3: \"-1\": want a number from 0 to 2147483647\n" +
			"ids:4: want a GUID and a number\nids:6: 0x0000000000000005 is on line 5 already\nids:7: GUID \"leaf\": want 0x and hexadecimal digits"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseNumbers("ids", []byte(tt.data))
			if d := cmp.Diff(message(err), tt.err); d != "" {
				t.Errorf("error (-got +want):\n%s", d)
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestParsePorts(t *testing.T) {
	tests := []struct {
		name, data string
		want       map[ib.GUID][]ib.PortNum
		err        string
	}{
		{"two switches", "0x1 3 1 2\n0x2 254 # all\n", map[ib.GUID][]ib.PortNum{1: {3, 1, 2}, 2: {254}}, ""},
		{"wrong", "0x1\n0x2 0\n0x3 255\n0x4 5 6 5\n", nil, "order:1: want a GUID and port numbers\n" +
			"order:2: \"0\": want a port number from 1 to 254\norder:3: \"255\": want a port number from 1 to 254\norder:4: port 5 is named twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParsePorts("order", []byte(tt.data))
			if d := cmp.Diff(message(err), tt.err); d != "" {
				t.Errorf("error (-got +want):\n%s", d)
			}
			if d := cmp.Diff(got, tt.want); d != "" {
				t.Errorf("(-got +want):\n%s", d)
			}
		})
	}
}

func TestNumbersTellSoMuchAndNoMore(t *testing.T) {
	_, err := ParseNumbers("f", []byte(strings.Repeat("x\n", 1000)))
	if err == nil || strings.Count(err.Error(), "\n") != maxErrors || !strings.HasSuffix(err.Error(), "f: and 980 more lines are wrong") {
		t.Errorf("got %v", err)
	}
}

func FuzzParseNumbers(f *testing.F) {
	f.Add([]byte("0x1 7 # a\n\n0x2 3 4\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		numbers, err := ParseNumbers("f", data)
		if (err == nil) != (len(numbers) > 0) {
			t.Fatalf("%d GUIDs, error %v", len(numbers), err)
		}
		ports, err := ParsePorts("f", data)
		if (err == nil) != (len(ports) > 0) {
			t.Fatalf("%d switches, error %v", len(ports), err)
		}
	})
}
