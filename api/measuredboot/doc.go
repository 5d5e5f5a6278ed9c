// Package measuredboot keeps reference values of measured boots: learned from
// proven boots of hosts or from event logs, approved by somebody else, ended at
// a date or by hand, each step in the audit log. Waivers go the same way, and
// always end. What counts of them says package attest/reference; admission asks
// it with every evidence.
package measuredboot
