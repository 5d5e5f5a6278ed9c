package attest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"portcullis/attest"
)

func TestStatementRoundTrip(t *testing.T) {
	t.Parallel()
	want := newLab(t).host.Statement
	want.Board.Vendor = `Quotes " and <tags> & back\slashes`
	b, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := attest.ParseStatement(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*got, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

// TestStatementBytes pins the canonical form: it is part of the protocol.
func TestStatementBytes(t *testing.T) {
	t.Parallel()
	s := newLab(t).host.Statement
	s.HCAs[0].Ports[1] = attest.Port{Num: 2, LinkLayer: attest.LinkEthernet}
	got, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"host":"compute-01","boot_id":"0b3ce5a2-5dcb-4b4e-9a0e-3f8f4a6e2d11",` +
		`"collected_at":"2026-03-01T12:00:00Z","agent":"test",` +
		`"board":{"vendor":"Example","name":"Board","serial":"SN1","product_uuid":"4c4c4544-0042-3010-8051-b4c04f4d3132"},` +
		`"hcas":[{"name":"mlx5_0","node_guid":"0x0002c90300000100","system_image_guid":"0x0002c90300000100",` +
		`"psid":"MT_0000000838","hca_type":"MT4129","firmware":"28.43.1014","ports":[` +
		`{"port":1,"guid":"0x0002c90300000101","link_layer":"InfiniBand"},{"port":2,"link_layer":"Ethernet"}]}]}`
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
}

func TestParseStatementRefuses(t *testing.T) {
	t.Parallel()
	s := newLab(t).host.Statement
	valid, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, old, new, want string }{
		{"duplicate key", `"version":1,`, `"version":1,"version":1,`, "not canonical from byte 14"},
		{"other letter case", `"version"`, `"Version"`, "not canonical"},
		{"unknown field", `"version":1,`, `"version":1,"lock":true,`, "unknown field"},
		{"white space", `"version":1,`, `"version": 1,`, "not canonical"},
		{"other order", `"version":1,"host":"compute-01"`, `"host":"compute-01","version":1`, "not canonical"},
		{"trailing JSON", `]}]}`, `]}]}{}`, "not canonical"},
		{"trailing line", `]}]}`, "]}]}\n", "not canonical"},
		{"escaped letter", `"test"`, `"\u0074est"`, "not canonical"},
		{"number as text", `"version":1`, `"version":"1"`, "cannot unmarshal"},
		{"number with exponent", `"port":2`, `"port":2e0`, "cannot unmarshal"},
		{"null list", `"ports":[{"port":1,"guid":"0x0002c90300000101","link_layer":"InfiniBand"},{"port":2,"guid":"0x0002c90300000102","link_layer":"InfiniBand"}]`, `"ports":null`, "no InfiniBand port"},
		{"version 2", `"version":1`, `"version":2`, "version 2, want 1"},
		{"host id", `"compute-01"`, `"compute 01"`, "host id"},
		{"boot id", `"0b3ce5a2-`, `"0B3CE5A2-`, "boot_id"},
		{"time zone", `12:00:00Z`, `12:00:00+02:00`, "not canonical"},
		{"part of a second", `12:00:00Z`, `12:00:00.5Z`, "whole seconds"},
		{"no agent", `"agent":"test"`, `"agent":""`, "agent: empty"},
		{"control character", `"SN1"`, `"SN\u001b[2J"`, "not printable ASCII"},
		{"not ASCII", `"SN1"`, `"SÑ1"`, "not printable ASCII"},
		{"text too long", `"SN1"`, `"` + strings.Repeat("x", 129) + `"`, "at most 128"},
		{"device name", `"mlx5_0"`, `"../mlx5_0"`, "not a device name"},
		{"GUID zero", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0x0000000000000000"`, "not valid"},
		{"GUID all ones", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0xffffffffffffffff"`, "not valid"},
		{"GUID short", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0x2c90300000100"`, "not canonical"},
		{"GUID in upper case", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0x0002C90300000100"`, "not canonical"},
		{"GUID with colons", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0002:c903:0000:0100"`, "not canonical"},
		{"GUID too long", `"node_guid":"0x0002c90300000100"`, `"node_guid":"0x00002c90300000100"`, "0x00002c90300000100"},
		{"port GUID twice", `0x0002c90300000102`, `0x0002c90300000101`, "is that of"},
		{"port number twice", `"port":2`, `"port":1`, "ascending"},
		{"port 0", `"port":1`, `"port":0`, "want port 1 to 254"},
		{"port 300", `"port":2`, `"port":300`, "cannot unmarshal"},
		{"link layer", `"link_layer":"InfiniBand"`, `"link_layer":"Infiniband"`, "link layer"},
		{"Ethernet port with GUID", `"link_layer":"InfiniBand"`, `"link_layer":"Ethernet"`, "has no GUID"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			b := strings.Replace(string(valid), tc.old, tc.new, 1)
			if b == string(valid) {
				t.Fatalf("statement has no %q", tc.old)
			}
			if _, err := attest.ParseStatement([]byte(b)); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	t.Run("every prefix", func(t *testing.T) {
		t.Parallel()
		for n := range valid {
			if _, err := attest.ParseStatement(valid[:n]); err == nil {
				t.Errorf("accepted when cut at %d", n)
			}
		}
	})
}

// TestStatementBombs shows that hostile sizes give short errors.
func TestStatementBombs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"over its size":   strings.Repeat(" ", attest.MaxStatement+1),
		"deep nesting":    `{"hcas":` + strings.Repeat("[", 60000),
		"10,000 adapters": `{"version":1,"hcas":[` + strings.Repeat("{},", 10000) + `{}]}`,
		"many ports":      `{"version":1,"hcas":[{"ports":[` + strings.Repeat("{},", 10000) + `{}]}]}`,
	} {
		_, err := attest.ParseStatement([]byte(b))
		if err == nil || len(err.Error()) > 4096 {
			t.Errorf("%s: got error of %d bytes", name, len(err.Error()))
		}
	}
}
