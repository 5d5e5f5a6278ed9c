// Package measuredboot keeps reference values of measured boots. They are learned from proven boots of hosts or from event
// logs, approved by a second person, ended at a date or by hand, each step in the audit log. Waivers go the same way, and
// always end. Package attest/reference decides which of them count; admission asks it with every evidence.
package measuredboot
