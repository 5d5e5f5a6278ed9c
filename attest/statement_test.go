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
	s.EventLog = strings.Repeat("e1", 32)
	s.HCAs[0].Ports[1] = attest.Port{Num: 2, LinkLayer: attest.LinkEthernet}
	got, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":2,"host":"compute-01","boot_id":"0b3ce5a2-5dcb-4b4e-9a0e-3f8f4a6e2d11",` +
		`"collected_at":"2026-03-01T12:00:00Z","agent":"test","image":"provisioning-7","event_log":"` + strings.Repeat("e1", 32) + `","tools":null,` +
		`"board":{"vendor":"Example","name":"Board","serial":"SN1","product_uuid":"4c4c4544-0042-3010-8051-b4c04f4d3132"},` +
		`"hcas":[{"name":"mlx5_0","pci_address":"0000:17:00.0","serial":"MT2233X00001","part_number":"MCX75310AAS-NEAT",` +
		`"device_id":4129,"hardware_id":536,"node_guid":"0x0002c90300000100","system_image_guid":"0x0002c90300000100",` +
		`"base_guid":"0x0002c90300000100","base_mac":"b83fd2012340","alternate_guid":"no","psid":"MT_0000000838","hca_type":"MT4129",` +
		`"firmware":{"running":"28.43.1014","pending":"28.43.1014","release_date":"2024-11-05","life_cycle":"ga-secured",` +
		`"secure_boot":"yes","recovery":"no","attributes":["secure-fw"],"security_version":0,"rollback_floor":0,` +
		`"reference":{"sha256":"` + strings.Repeat("5a", 32) + `","key":"f1e2d3c4-0000-4000-8000-000000000001"},"assurance":"G1"},` +
		`"lock":{"method":"signed-file","mlock":"locked","epoch":1,` +
		`"file":{"sha256":"` + strings.Repeat("a5", 32) + `","key":"c0ffee00-1122-3344-5566-778899aabbcc"},` +
		`"items":[{"class":0,"index":290,"supported":"yes","priority":"OEM","ovr_en":"no","current":"80000000","next":"80000000"}]},` +
		`"tokens":[{"kind":"rmcs","session":"no"},{"kind":"rmdt","session":"no"}],"ports":[` +
		`{"port":1,"guid":"0x0002c90300000101","link_layer":"InfiniBand","has_smi":"no","smp_probe":"blocks"},{"port":2,"link_layer":"Ethernet"}],` +
		`"registers_sha256":"","spdm_sha256":"","sources":[{"fact":"firmware","from":"fwctl"},{"fact":"guids","from":"sysfs"}],"unread":null}]}`
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
		{"duplicate key", `"version":2,`, `"version":2,"version":2,`, "not canonical from byte 14"},
		{"other letter case", `"version"`, `"Version"`, "not canonical"},
		{"unknown field", `"version":2,`, `"version":2,"lock":true,`, "unknown field"},
		{"white space", `"version":2,`, `"version": 2,`, "not canonical"},
		{"other order", `"version":2,"host":"compute-01"`, `"host":"compute-01","version":2`, "not canonical"},
		{"trailing JSON", `null}]}`, `null}]}{}`, "not canonical"},
		{"trailing line", `null}]}`, "null}]}\n", "not canonical"},
		{"escaped letter", `"test"`, `"\u0074est"`, "not canonical"},
		{"number as text", `"version":2`, `"version":"2"`, "cannot unmarshal"},
		{"number with exponent", `"port":2`, `"port":2e0`, "cannot unmarshal"},
		{"null list", `"hcas":[`, `"hcas":null,"x":[`, "unknown field"},
		{"version 1", `"version":2`, `"version":1`, "version 1, want 2"},
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
		{"word of no meaning", `"mlock":"locked"`, `"mlock":"sealed"`, "is not one of"},
		{"word left out", `"secure_boot":"yes",`, ``, "not canonical"},
		{"word null", `"secure_boot":"yes"`, `"secure_boot":null`, "not canonical"},
		{"word as a number", `"secure_boot":"yes"`, `"secure_boot":1`, "cannot unmarshal"},
		{"PCI address", `0000:17:00.0`, `0000:17:00.8`, "pci_address"},
		{"base MAC", `b83fd2012340`, `b8:3f:d2:01:23:40`, "base_mac"},
		{"release date", `2024-11-05`, `5.11.2024`, "release_date"},
		{"attribute word", `["secure-fw"]`, `["secure-fw, dev"]`, "attribute word"},
		{"digest in upper case", strings.Repeat("5a", 32), strings.Repeat("5A", 32), "digest"},
		{"key of the file", `c0ffee00-1122`, `C0FFEE00-1122`, "UUID"},
		{"item data", `"current":"80000000"`, `"current":"8000000"`, "lower-case hexadecimal"},
		{"item twice", `"items":[`, `"items":[{"class":0,"index":290,"supported":"no","priority":"unknown","ovr_en":"unknown","current":"","next":""},`, "not in ascending order"},
		{"item index", `"index":290`, `"index":16777216`, "24 bits"},
		{"token order", `"rmcs"`, `"rmdz"`, "not in ascending order"},
		{"event log digest", `"event_log":"`, `"event_log":"none`, "event_log"},
		{"security version", `"security_version":0`, `"security_version":-1`, "cannot unmarshal"},
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

// TestStatementBombs shows that hostile sizes cause short errors.
func TestStatementBombs(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]string{
		"over its size":   strings.Repeat(" ", attest.MaxStatement+1),
		"deep nesting":    `{"hcas":` + strings.Repeat("[", 60000),
		"closed at once":  "]",
		"10,000 adapters": `{"version":2,"hcas":[` + strings.Repeat("{},", 10000) + `{}]}`,
		"many ports":      `{"version":2,"hcas":[{"ports":[` + strings.Repeat("{},", 10000) + `{}]}]}`,
	} {
		_, err := attest.ParseStatement([]byte(b))
		if err == nil || len(err.Error()) > 4096 {
			t.Errorf("%s: got error of %d bytes", name, len(err.Error()))
		}
	}
}
