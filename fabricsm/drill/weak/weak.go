// Package weak has the policies that drills inject in place of the strict ones, each without one control: they show that a
// drill fails without it. No service links it.
package weak

import (
	"portcullis/fabricsm/ib"
	"portcullis/fabricsm/sa"
	"portcullis/fabricsm/sa/group"
	"portcullis/fabricsm/sa/portindex"
	"portcullis/fabricsm/sa/trust"
)

// AnyKey accepts any value as SA_Key, and trusts the requester.
type AnyKey struct{ sa.Strict }

// Accepts implements sa.Policy.
func (AnyKey) Accepts(v trust.Verdict) bool {
	return v == trust.OK || v == trust.WrongKey || v == trust.RetiredKey
}

// Trusting answers every requester about one topic as if it were trusted.
type Trusting struct {
	sa.Strict
	About sa.Topic
}

// Trusts implements sa.Policy.
func (t Trusting) Trusts(about sa.Topic, who portindex.Asker) bool {
	return about == t.About || t.Strict.Trusts(about, who)
}

// AnyPKey shows groups to, and lets into them, ports without their P_Key.
type AnyPKey struct{ group.Strict }

// Knows implements group.Policy.
func (AnyPKey) Knows(*portindex.EndPort, ib.PKey) bool { return true }

// Partition implements group.Policy.
func (AnyPKey) Partition(*group.Group, *portindex.EndPort) group.Reason { return group.NoReason }

// AnyLink lets ports into groups that their link is too slow for, or has too small an MTU for.
type AnyLink struct{ group.Strict }

// Link implements group.Policy.
func (AnyLink) Link(*group.Group, *portindex.EndPort) group.Reason { return group.NoReason }

// AnyMembership lets a requester that may act for a port change all memberships of it, also those made by others.
type AnyMembership struct{ group.Strict }

// Changes implements group.Policy.
func (AnyMembership) Changes(group.Member, bool, ib.GUID) bool { return true }

// AnyAlias is an inventory in which every host may have any alias.
type AnyAlias struct{}

// Allows implements alias.Inventory.
func (AnyAlias) Allows(_, _ ib.GUID) bool { return true }

// Choose implements alias.Inventory.
func (AnyAlias) Choose(ib.GUID, func(ib.GUID) bool) ib.GUID { return 0 }

// AnyRequest answers requests that untrusted clients may not make, as if they had shown the SA_Key.
type AnyRequest struct{ sa.Strict }

// Accepts implements sa.Policy.
func (AnyRequest) Accepts(v trust.Verdict) bool { return v == trust.OK || v == trust.NotAllowed }
