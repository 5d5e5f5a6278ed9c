package attesttest

import (
	"strings"

	"portcullis/attest"
	"portcullis/fabricsm/ib"
)

func statement(id string, base ib.GUID) attest.Statement {
	return attest.Statement{
		Version: attest.StatementVersion, Host: id,
		BootID: "0b3ce5a2-5dcb-4b4e-9a0e-3f8f4a6e2d11", CollectedAt: Epoch, Agent: "test", Image: "provisioning-7",
		Board: attest.Board{Vendor: "Example", Name: "Board", Serial: "SN1", ProductUUID: "4c4c4544-0042-3010-8051-b4c04f4d3132"},
		HCAs:  []attest.HCA{HCA("mlx5_0", base, base, base+1, base+2)},
	}
}

// HCA is an adapter of which everything is known and as it should be: firmware
// of assurance G1, settings of a signed file, locked under a key of epoch 1.
func HCA(name string, node, image ib.GUID, ports ...ib.GUID) attest.HCA {
	h := attest.HCA{
		Name: name, PCI: "0000:17:00.0", Serial: "MT2233X00001", PartNumber: "MCX75310AAS-NEAT",
		DeviceID: 0x1021, HardwareID: 0x218,
		NodeGUID: node, SystemImageGUID: image, BaseGUID: node, BaseMAC: "b83fd2012340", AlternateGUID: attest.No,
		PSID: "MT_0000000838", Type: "MT4129",
		Firmware: attest.Firmware{
			Running: "28.43.1014", Pending: "28.43.1014", ReleaseDate: "2024-11-05",
			LifeCycle: attest.LifeGASecured, SecureBoot: attest.Yes, Recovery: attest.No,
			Attributes: []string{"secure-fw"}, SecurityVersion: new(uint32), RollbackFloor: new(uint32),
			Reference: &attest.Reference{SHA256: strings.Repeat("5a", 32), KeyID: "f1e2d3c4-0000-4000-8000-000000000001"},
			Assurance: attest.G1,
		},
		Lock: attest.Lock{
			Method: attest.LockSignedFile, MLOCK: attest.MLOCKLocked, Epoch: 1,
			File: &attest.LockFile{SHA256: strings.Repeat("a5", 32), KeyID: "c0ffee00-1122-3344-5566-778899aabbcc"},
			Items: []attest.Item{{
				Index: 290, Supported: attest.Yes, Priority: attest.PriorityOEM, Override: attest.No,
				Current: "80000000", Next: "80000000",
			}},
		},
		Tokens:  []attest.Token{{Kind: "rmcs", Session: attest.No}, {Kind: "rmdt", Session: attest.No}},
		Sources: []attest.Source{{Fact: "firmware", From: "fwctl"}, {Fact: "guids", From: "sysfs"}},
	}
	for i, g := range ports {
		h.Ports = append(h.Ports, attest.Port{
			Num: ib.PortNum(i + 1), GUID: g, LinkLayer: attest.LinkInfiniBand, HasSMI: attest.No, Firewall: attest.FirewallBlocks,
		})
	}
	return h
}
