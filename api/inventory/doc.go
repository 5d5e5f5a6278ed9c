// Package inventory knows which hosts exist, which HCAs and GUIDs they have,
// whose TPM they carry and at which switch port each HCA port is cabled.
//
// It is one of the legs admission stands on: what is written here was written
// by the operator at rack integration, never by a host. Nothing in this
// package talks to a host or to the fabric.
//
// Inventory comes in YAML files. Hosts and cables may be in one file or in
// several, and cables may be imported later than the hosts they name:
//
//	hosts:
//	  - id: compute-01
//	    rack: r1
//	    class: gpu-node             # whose reference values its boot must have; default when absent
//	    ek_sha256: 0f3a...          # SHA-256 of the TPM's EK, 64 hex digits
//	    hcas:
//	      - node_guid: 0x0002c90300a1b2c0
//	        system_image_guid: 0x0002c90300a1b2c3
//	        ports:
//	          - port: 1
//	            guid: 0x0002c90300a1b2c1
//	            cable: 0x0002c90200000010/7   # switch GUID/port; optional here
//	            aliases: [0x0002c90300a1b2d1] # alias GUIDs that it may have; optional
//	cables:
//	  - {guid: 0x0002c90300a1b2c1, switch: 0x0002c90200000010, port: 7}
//	  - {host: compute-02, hca: 0x0002c90300a1b2d0, hca_port: 1, switch: 0x0002c90200000010, port: 8}
//
// Parse reads files, NewPlan compares them with what is stored. Both find
// every problem before giving up, and name file and line. An import is all or
// nothing, adds and changes hosts, and never removes one.
package inventory
