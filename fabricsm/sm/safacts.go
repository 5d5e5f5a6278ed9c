package sm

import "strings"

// Kinds of facts of subnet administration. They have a Name, and the core does not
// read them. One without Body takes back an earlier one of the same kind and Name.
const (
	FactSAGroup        FactKind = saPrefix + "group"
	FactSAMember       FactKind = saPrefix + "member"
	FactSAService      FactKind = saPrefix + "service"
	FactSASubscription FactKind = saPrefix + "subscription"
	FactSAAlias        FactKind = saPrefix + "alias"
	// FactSAKeys: the data on SA_Keys besides the keys, which are in a KeyFact.
	FactSAKeys FactKind = saPrefix + "keys"

	saPrefix = "sa-"
)

// OfSA reports whether facts of a kind belong to subnet administration.
func (k FactKind) OfSA() bool { return strings.HasPrefix(string(k), saPrefix) }
