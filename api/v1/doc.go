// Package v1 holds the data shapes of the HTTPS API, version 1: what the
// service answers, what clients send, and the names of phases and reasons.
// They carry no behaviour beyond text forms, so that the service, the client,
// the CLI and the agent share them.
//
// Shapes: GUIDs are "0x" and 16 digits, P_Keys "0x" and 4 digits with the
// membership bit clear, places "SWITCH-GUID/PORT", times RFC 3339.
package v1
