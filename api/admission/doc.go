// Package admission decides which host's GUIDs may join which partition.
package admission
