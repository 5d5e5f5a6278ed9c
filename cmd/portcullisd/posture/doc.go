// Package posture collects the facts that package profile judges: from the configuration in use, the newest view of the Subnet
// Manager, the records of hosts, and the anchors of the audit log. What has no evidence is unknown, with the reason.
package posture
