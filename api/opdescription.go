package api

import (
	"strings"

	"portcullis/api/roles"
	"portcullis/api/rules"
)

// mayCall says which callers may call an operation. Where a credential is asked, it continues a sentence that names the roles.
var mayCall = map[access]string{
	accessPublic:  "No credential is asked.",
	accessHost:    "For the agent of a host: its evidence or its ticket speaks for it, and no credential is asked.",
	accessStatus:  "For the agent of a host, about that host alone: with the certificate of its key, or with its status token.",
	accessView:    " may call it.",
	accessAudit:   " may call it that has no ranges of P_Keys: the answer is about all tenants.",
	accessOperate: " may call it that has no ranges of P_Keys.",
	accessTenancy: " may call it, within its ranges of P_Keys.",
}

// description says what the summary does not: who may call an operation, what its headers do, and when it is refused
// whatever it says. It is made of what the operation is registered with.
func (op *operation) description(local bool) string {
	var says []string
	say := func(holds bool, text string) {
		if holds {
			says = append(says, text)
		}
	}
	if local {
		says = append(says, "Each user that the file system lets connect to the socket may call it.")
	} else if op.access.asksCredential() {
		says = append(says, "A credential with the role "+roles.OneOf(roles.Of(op.id))+mayCall[op.access])
	} else {
		says = append(says, mayCall[op.access])
	}
	say(roles.Allows(roles.Tenant, op.id), "For one with the role tenant nothing exists but what its tenants have.")
	changes := op.method != "GET"
	say(!changes, "It changes nothing.")
	say(rules.VersionOf(op.id) == rules.MustName, "Without `If-Match` it is refused (428), because it takes something away.")
	say(op.honours, "With `If-Match` it is refused (412) if the object has another version than the one named.")
	say(op.repeatable() && !local, "With `Idempotency-Key`, a repeat within a day is answered as the first request was.")
	say(op.reason != nil, "Its reason is the one of the body or of `Portcullis-Reason`: where both are there, they have to be the same.")
	say(op.explains() && op.reason == nil && rules.TakesAway(op.id), "Without `Portcullis-Reason` it is refused (422) where the service demands a reason.")
	say(op.leader, "The instance that leads answers; the others pass the request on to it.")
	say(rules.Grants(op.id), "It is refused (503) while the clock of the machine is not believed.")
	say(rules.Grows(op.id), "It is refused (503) while the store is short of room, so that removals can still be recorded.")
	say(op.status == 202, "The answer comes before the effect (202): the object that is answered shows when it has taken place.")
	say(op.long && op.tag == "fabric", "It takes as long as all tables of the fabric take to be read, at most 10 minutes.")
	say(op.long && op.tag != "fabric", "It takes as long as the whole store takes to be read.")
	return strings.Join(says, " ")
}
