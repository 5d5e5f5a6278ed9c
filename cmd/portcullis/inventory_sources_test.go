package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"portcullis/api/inventory/signature"
)

const rackManifest = `{
 "manifest": {"version": 1, "rack": "r7"},
 "racks": [{"id": "r7", "units": 42}],
 "switches": [{"id": "leaf-7", "guid": "0x0010000000000071", "model": "MSX6036", "role": "leaf", "rack": "r7", "unit": 20}],
 "hosts": [{"id": "h7", "rack": "r7", "unit": 3, "hcas": [{"node_guid": "0x0020000000000071", "ports": [{"port": 1, "guid": "0x0020000000000071", "cable": "leaf-7/7"}]}]}]
}
`

const rackLines = `kind,rack,id,units,unit,model,guid,port,port_guid,to,from,label
host,r7,h8,,4,,0x0020000000000081,1,0x0020000000000081,leaf-7/8,,
`

// signedManifests writes manifests of rack r7 below dir, and returns the keys that verify them: r7.json and r7.csv are signed,
// clash.json twice names a unit, altered.json was changed after it was signed, unsigned.json has no signature.
func signedManifests(dir string) (*signature.Set, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return nil, err
	}
	clash := strings.Replace(rackManifest, `"unit": 3`, `"unit": 20`, 1)
	for name, text := range map[string]string{
		"r7.json": rackManifest, "r7.csv": rackLines, "clash.json": clash, "altered.json": rackManifest, "unsigned.json": rackManifest,
	} {
		data := []byte(text)
		if name != "unsigned.json" {
			if err := os.WriteFile(filepath.Join(dir, name+".sig"), ed25519.Sign(private, data), 0o600); err != nil {
				return nil, err
			}
		}
		if name == "altered.json" {
			data = bytes.Replace(data, []byte("leaf-7/7"), []byte("leaf-7/9"), 1)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	text := strings.TrimSpace(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	return signature.Parse("keys.yaml", fmt.Appendf(nil, "keys:\n- name: integrator\n  racks: [r7]\n  key: |\n    %s\n", strings.ReplaceAll(text, "\n", "\n    ")))
}
