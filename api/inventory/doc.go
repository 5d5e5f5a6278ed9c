// Package inventory knows which hosts exist, which HCAs and GUIDs they have,
// whose TPM they carry and at which switch port each HCA port is cabled.
//
// It is one of the legs admission stands on: what is written here was written
// by the operator at rack integration, never by a host.
package inventory

// File is one inventory or cabling file as it was handed in. Name is used in
// messages only; nothing is opened.
type File struct {
	Name string
	Data []byte
}
