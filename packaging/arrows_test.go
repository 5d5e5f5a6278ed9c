package packaging

// arrow says what of ours a package, and everything below it, may import.
// Packages may always import what lies in their own tree.
type arrow struct {
	from string   // below the module's path
	may  []string // trees of ours that it may import, below the module's path
	not  []string // trees, of any module, that it may not import even if may allows them
	why  string
}

// arrows are those of docs/reference/packages.md. The longest from that fits a
// package is the one that counts.
var arrows = []arrow{
	{from: "fabricsm/strictyaml", why: "a reader of YAML knows no file of any part"},
	{from: "fabricsm/opensmconf", why: "a reader of settings knows none of them"},
	{from: "fabricsm/opensmconf/verdict", may: []string{"fabricsm/opensmconf", "fabricsm/ib", "fabricsm/strictyaml"}, why: "a table of options knows no file"},
	{
		from: "fabricsm/opensmconf/movein",
		may: []string{
			"fabricsm/opensmconf", "fabricsm/ib", "fabricsm/topo", "fabricsm/route", "fabricsm/partition", "fabricsm/qos", "fabricsm/keys",
			"fabricsm/topospec", "fabricsm/sa", "fabricsm/driver/guid2lid",
		},
		not: []string{"net", "os", "log", "context", "time"},
		why: "a plan is made of files that others read, by the readers of those files",
	},
	{from: "fabricsm/ib", why: "ib imports nothing of ours"},
	{from: "fabricsm/fattree", why: "fattree knows only numbers of switches and ports"},
	{from: "fabricsm/mad", may: []string{"fabricsm/ib"}, why: "mad imports only ib"},
	{from: "fabricsm/topo", may: []string{"fabricsm/ib", "fabricsm/fattree"}, why: "topo imports only ib, and its shapes for tests the sizes of trees"},
	{from: "fabricsm/route", may: []string{"fabricsm/ib", "fabricsm/topo"}, why: "planners import only ib and topo"},
	{from: "fabricsm/partition", may: []string{"fabricsm/ib", "fabricsm/topo"}, why: "planners import only ib and topo"},
	{from: "fabricsm/mcast", may: []string{"fabricsm/ib", "fabricsm/topo", "fabricsm/route"}, why: "trees grow beside unicast routes"},
	{from: "fabricsm/qos", may: []string{"fabricsm/ib", "fabricsm/topo"}, why: "planners import only ib and topo"},
	{from: "fabricsm/proof", may: []string{"fabricsm/ib", "fabricsm/proof/bitset"}, not: []string{"net", "os", "log", "context", "time"}, why: "a proof knows only what devices were read to hold"},
	{from: "fabricsm/topospec", may: []string{"fabricsm/ib", "fabricsm/topo", "fabricsm/fattree", "fabricsm/strictyaml"}, why: "the declared fabric is read from files, and else a planner"},
	{from: "fabricsm/proof/bitset", not: []string{"net", "os", "log", "context", "time"}, why: "a set of numbers is the same whatever they are of"},
	{
		from: "fabricsm/proof/reader", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/proof"}, not: []string{"net", "os", "log", "context", "time"},
		why: "a reader of tables shares nothing with the Subnet Manager but the codec",
	},
	{
		from: "fabricsm/proof/disclosure", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/proof"}, not: []string{"net", "os", "log", "context", "time"},
		why: "what subnet administration answers is judged without its code",
	},
	{
		from: "fabricsm/inquiry", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/topo"}, not: []string{"net", "os", "log", "context", "time"},
	},
	{
		from: "fabricsm/readback", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/proof", "fabricsm/transport"},
		why: "what is proven of a fabric is read past the Subnet Manager",
	},
	{from: "fabricsm/perfmgr", may: []string{"fabricsm/ib", "fabricsm/mad"}, why: "a performance manager only asks, and shares nothing with the Subnet Manager but the codec"},
	{
		from: "fabricsm/perfread", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/transport", "fabricsm/perfmgr"},
		why: "counters are read past the Subnet Manager, of the fabric that it has seen",
	},
	{
		from: "fabricsm/shadow", may: []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/transport"},
		why: "what only asks knows packets, and no Subnet Manager",
	},
	{from: "fabricsm/pause", not: []string{"net", "os", "log"}, why: "a pause knows nothing of what waits"},
	{from: "fabricsm/keys", may: []string{"fabricsm/ib"}, why: "keys knows values, and neither packets nor stores"},
	{from: "fabricsm/vault", may: []string{"fabricsm/ib", "fabricsm/keys"}, why: "a vault seals keys and knows nobody who uses them"},
	{
		from: "fabricsm/sm",
		may: []string{
			"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/route", "fabricsm/partition", "fabricsm/mcast", "fabricsm/qos",
			"fabricsm/topospec",
			"fabricsm/keys",
		},
		why: "the core knows values, codec, topology and planners",
	},
	{
		from: "fabricsm/sa",
		may: []string{
			"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/route", "fabricsm/partition", "fabricsm/mcast", "fabricsm/qos",
			"fabricsm/keys", "fabricsm/rmpp", "fabricsm/sm", "fabricsm/transport",
		},
		not: []string{"portcullis/fabricsm/transport/ibsim", "portcullis/fabricsm/transport/umad"},
		why: "subnet administration knows values, codec, planners and what the core shows",
	},
	{from: "fabricsm/rmpp", may: []string{"fabricsm/ib", "fabricsm/mad"}, why: "segments know only MADs"},
	{from: "fabricsm/transport", may: []string{"fabricsm/ib", "fabricsm/mad"}, why: "a transport carries packets and decides nothing"},
	{
		from: "fabricsm/sim",
		may:  []string{"fabricsm/ib", "fabricsm/mad", "fabricsm/transport", "fabricsm/fattree"},
		why:  "the simulator and the Subnet Manager share no code but the wire's",
	},
	{
		from: "fabricsm/driver",
		may: []string{
			"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/route", "fabricsm/partition",
			"fabricsm/mcast", "fabricsm/qos", "fabricsm/sm", "fabricsm/sa", "fabricsm/rmpp", "fabricsm/transport", "fabricsm/keys", "fabricsm/vault",
			"fabricsm/pause",
		},
		why: "the driver runs a core over a transport and knows no service",
	},
	{
		from: "fabricsm/testbed",
		may: []string{
			"fabricsm/ib", "fabricsm/mad", "fabricsm/topo", "fabricsm/route", "fabricsm/sm", "fabricsm/sa", "fabricsm/rmpp", "fabricsm/sim", "fabricsm/transport", "fabricsm/keys",
		},
		why: "the stage puts core and simulator together and knows neither driver nor service",
	},
	{
		from: "fabricsm/drill", may: []string{"fabricsm"}, not: []string{"portcullis/fabricsm/driver"},
		why: "drills may use all of the fabric, and no service",
	},
	{from: "attest", may: []string{"fabricsm/ib", "fabricsm/strictyaml"}, why: "attest knows of the fabric only ib, and nothing of firmware"},
	{from: "firmware", may: []string{"fabricsm/ib", "fabricsm/strictyaml"}, why: "firmware knows of the fabric only ib, and nothing of attest"},
	{
		from: "agent",
		may:  []string{"attest", "firmware", "fabricsm/ib", "api/v1", "api/client", "fabricsm/strictyaml"},
		why:  "the agent speaks to the service and the TPM, and knows of the fabric only ib",
	},
	{
		from: "agent/hca", may: []string{"attest", "firmware", "fabricsm/ib"},
		why: "adapters are read without any service",
	},
	{
		from: "agent/hca/register", may: []string{"fabricsm/ib"}, not: []string{"net", "os", "log", "context", "time"},
		why: "registers are bytes; others carry them",
	},
	{from: "agent/checklist", not: []string{"os", "net", "log", "context", "time"}, why: "results of checks are text; the doctors make them"},
	{from: "agent/selinux", may: []string{"fabricsm/ib", "fabricsm/strictyaml"}, not: []string{"os", "log", "context", "time"}, why: "a policy is text; others read and write files"},
	{from: "agent/selinux/live", may: []string{"agent/selinux/policydb"}, why: "the running system is looked at beside what a policy is"},
	{
		from: "agent/hca/hcasim", may: []string{"firmware", "fabricsm/ib", "agent/hca/register"},
		not: []string{"net", "os", "log", "context", "time"},
		why: "a simulated adapter shares registers with the agent, and nothing else",
	},
	{
		from: "agent/hca/hcasim/cardsocket", may: []string{"agent/hca/hcasim", "agent/hca/register"},
		why: "a socket carries commands to a simulated adapter",
	},
	{from: "api/v1", may: []string{"fabricsm/ib", "attest"}, why: "shapes carry values and know nobody who handles them"},
	{from: "api/client", may: []string{"fabricsm/ib", "attest", "api/v1"}, why: "the client shares shapes with the service, not code"},
	{
		from: "api/store",
		may:  []string{"fabricsm/ib"},
		why:  "the store keeps records and does not know what they mean",
	},
	{from: "api/instances", may: []string{"api/store", "fabricsm/ib"}, why: "an instance is a record of the store, whatever it does"},
	{from: "api/page", may: []string{"api/store", "api/v1"}, why: "a page is cut the same way whatever is listed"},
	{from: "api/store/mirror", may: []string{"api/store"}, not: []string{"net", "os"}, why: "copies of records are the same whatever these mean"},
	{from: "api/store/written", may: []string{"api/store"}, not: []string{"net", "os"}, why: "a record is written the same way whatever it means"},
	{from: "api/leader", may: []string{"api/store"}, why: "leadership is a record of the store, whatever is led"},
	{
		from: "api/refusal", may: []string{"attest", "fabricsm/ib", "api/v1", "api/store", "api/page"}, not: []string{"net/http"},
		why: "a refusal is the same whichever part of the service refuses",
	},
	{
		from: "api/tenancy",
		may:  []string{"fabricsm/ib", "api/v1", "api/store", "api/limit", "api/page", "api/refusal", "api/clustername", "api/ifmatch", "api/label", "api/audit", "api/review", "api/fabric/records", "api/isolation/outsiders"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "tenants and clusters know no HTTP and no admission",
	},
	{
		from: "api/ifmatch",
		may:  []string{"api/refusal", "api/v1"},
		not:  []string{"net/http"},
		why:  "judges the version that a caller means",
	},
	{
		from: "api/problem", may: []string{"attest", "fabricsm/ib", "api/v1", "api/page", "api/refusal"},
		why: "how a refusal is answered is the same whichever route refuses",
	},
	{from: "api/openapi", not: []string{"portcullis"}, why: "a document is rendered the same way whatever it describes"},
	{from: "api/caller", not: []string{"portcullis", "net/http", "os", "log"}, why: "a request is the same whatever it asks for"},
	{from: "api/reason", not: []string{"portcullis", "net", "os", "log"}, why: "a reason is the same whatever was asked for it"},
	{from: "api/rules", not: []string{"portcullis", "net", "os", "log", "context", "time"}, why: "the guards of an operation are one table, whatever a request says"},
	{
		from: "api/ufm",
		may:  []string{"fabricsm/ib", "api/v1", "api/store", "api/refusal", "api/clustername", "api/ifmatch", "api/tenancy", "api/strictjson"},
		not:  []string{"portcullis/fabricsm/sm", "portcullis/api/admission"},
		why:  "another surface gives its orders to the services, by interfaces, and writes nothing itself",
	},
	{from: "api/clustername", not: []string{"portcullis", "net", "os", "log", "context", "time"}, why: "a name is read the same way whatever has it"},
	{from: "api/label", not: []string{"net", "os", "log", "context", "time"}, why: "labels and selectors are the same whatever has them"},
	{
		from: "api/audit/ocsf", may: []string{"api/audit/chain"}, not: []string{"net/http", "os", "log", "context"},
		why: "an event of another schema is made of an entry alone",
	},
	{
		from: "api/batch", may: []string{"api/v1", "api/problem", "api/refusal", "api/ifmatch"}, not: []string{"os", "log"},
		why: "each host of a batch is handled by what handles it alone",
	},
	{
		from: "api/hostlabel",
		may:  []string{"api/v1", "api/store", "api/label", "api/refusal", "api/audit", "api/tenancy", "api/inventory", "api/hostrecord"},
		not:  []string{"net/http", "portcullis/fabricsm/sm", "portcullis/api/admission"},
		why:  "labels of hosts are kept beside what decides about hosts, and change nothing of it",
	},
	{from: "api/pinned", not: []string{"portcullis", "os", "log"}, why: "a public key is believed the same way whatever is asked of its owner"},
	{from: "api/web", not: []string{"os", "log", "context", "time"}, why: "pages are fixed files, and ask the API for what they show"},
	{from: "api/strictjson", not: []string{"net", "os", "log", "context", "time"}, why: "a form of JSON is the same whatever is said in it"},
	{
		from: "api/credential",
		may:  []string{"api/clustername", "api/roles", "fabricsm/ib", "fabricsm/strictyaml"},
		not:  []string{"net/http"},
		why:  "a credential is the same whatever it is used for",
	},
	{
		from: "api/clientcert",
		may:  []string{"api/ca", "api/credential", "api/roles"},
		not:  []string{"net/http"},
		why:  "whose certificate it is is the same whatever is asked with it",
	},
	{from: "api/oidc", may: []string{"api/credential", "api/roles", "api/outgoing"}, why: "who a token was made for is the same whatever is asked with it"},
	{
		from: "api/roles",
		may:  []string{},
		not:  []string{"net/http"},
		why:  "what a role may do is one table, whichever credential has the role",
	},
	{
		from: "api/idempotency",
		may:  []string{"api/limit", "api/refusal", "api/store"},
		not:  []string{"net/http"},
		why:  "an answer is kept the same way whatever was asked",
	},
	{
		from: "api/idempotency/replay", may: []string{"api/v1", "api/idempotency"},
		why: "how an answer is held and sent again knows HTTP, and neither routes nor the store's records",
	},
	{from: "api/sse", not: []string{"portcullis"}, why: "a stream is written the same way whatever it tells"},
	{from: "api/syslog", not: []string{"portcullis"}, why: "a message is written and sent the same way whatever it tells"},
	{
		from: "api/events/exits",
		may:  []string{"fabricsm/ib", "api/v1", "api/events", "api/outgoing", "api/syslog", "api/webhook"},
		why:  "what is sent is on record, whichever way it leaves",
	},
	{from: "api/outgoing", may: []string{}, why: "which servers may be asked is the same whatever is asked"},
	{from: "api/webhook", may: []string{"fabricsm/ib", "api/outgoing"}, why: "a request is signed and sent the same way whatever it tells"},
	{
		from: "api/webhook/delivery",
		may:  []string{"api/v1", "api/store", "api/refusal", "api/audit", "api/events", "api/webhook"},
		not:  []string{"net/http"},
		why:  "what is sent where is on record, whichever way it is sent",
	},
	{from: "api/preauth", may: []string{"api/limit"}, why: "callers without a known credential are bounded the same way whatever they ask"},
	{from: "api/servercert", not: []string{"portcullis", "net/http"}, why: "a certificate is the same whatever is served with it"},
	{from: "api/events/cloudevent", may: []string{"api/v1", "api/events"}, why: "an envelope is the same whichever way it is sent"},
	{
		from: "api/events/feed",
		may:  []string{"api/v1", "api/store", "api/refusal", "api/events", "api/sse"},
		why:  "a feed tells what is on record, whichever part recorded it",
	},
	{from: "api/fabric/timeline", not: []string{"portcullis/fabricsm", "net", "log"}, why: "rows change the same way whatever they are of"},
	{
		from: "api/fabric/past",
		may:  []string{"fabricsm/ib", "fabricsm/pause", "api/v1", "api/store", "api/refusal", "api/hostrecord", "api/fabric/timeline"},
		not:  []string{"net/http"},
		why:  "what the map showed is read of lists that others make",
	},
	{
		from: "api/inventory/register",
		may:  []string{"attest", "fabricsm/ib", "fabricsm/topospec/approval", "api/v1", "api/store", "api/page", "api/refusal", "api/inventory", "api/hostrecord", "api/audit", "api/fabric/records"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "inventory knows no HTTP, and asks who decides about hosts by an interface",
	},
	{
		from: "api/inventory/signature", may: []string{"fabricsm/strictyaml"},
		not: []string{"net", "os", "log", "context", "time"},
		why: "a signature is over bytes, whatever they say",
	},
	{
		from: "api/inventory/source",
		may:  []string{"fabricsm/ib", "fabricsm/topospec", "fabricsm/strictyaml", "api/inventory"},
		not:  []string{"net", "os", "log", "context", "time", "portcullis/fabricsm/sm"},
		why:  "files of others become declarations, without I/O",
	},
	{
		from: "api/inventory/derive",
		may:  []string{"fabricsm/ib", "fabricsm/topo", "fabricsm/topospec", "api/v1", "api/store", "api/refusal", "api/inventory"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "the declared topology is made of the inventory, and asks who keeps revisions by an interface",
	},
	{
		from: "api/isolation",
		may: []string{
			"fabricsm/ib", "fabricsm/proof", "fabricsm/topospec", "api/v1", "api/store", "api/inventory", "api/fabric/records",
		},
		not: []string{"net/http", "portcullis/fabricsm/sm"},
		why: "what is proven of a fabric rests on what was read and declared, and not on the Subnet Manager",
	},
	{
		from: "api/isolation/outsiders",
		may:  []string{"fabricsm/ib", "api/v1", "api/store", "api/refusal", "api/fabric/records"},
		not:  []string{"net/http", "portcullis/fabricsm/sm", "portcullis/fabricsm/proof"},
		why:  "each part that adds members asks for ports that are none, and needs no prover for it",
	},
	{
		from: "api/isolation/standing",
		may:  []string{"api/v1", "api/store", "api/events"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "what operators are told of a verdict rests on reports and records alone",
	},
	{
		from: "api/isolation/remedy",
		may:  []string{"fabricsm/ib", "api/v1", "api/store", "api/events", "api/isolation"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "what is done about drift rests on readings and a policy, not on the memory of the Subnet Manager",
	},
	{
		from: "api/profile",
		not:  []string{"net", "os", "log", "context"},
		why:  "security profiles are one table of values",
	},
	{
		from: "api/adoption",
		may:  []string{"fabricsm/ib"},
		not:  []string{"net", "os", "log", "context", "portcullis/fabricsm/sm"},
		why:  "which memberships are kept without proof is decided without clock and I/O",
	},
	{
		from: "api/plan",
		may:  []string{"fabricsm/ib", "api/v1", "api/clustername", "api/label"},
		not:  []string{"net", "os", "log", "context", "time", "portcullis/fabricsm/sm"},
		why:  "how to come to what is wanted is decided without clock and I/O",
	},
	{
		from: "api/plan/found",
		may:  []string{"api/v1", "api/store", "api/refusal", "api/inventory", "api/label", "api/hostlabel", "api/hostrecord", "api/tenancy", "api/plan"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "a plan rests on what the store has, and changes nothing",
	},
	{
		from: "api/adoptions",
		may: []string{
			"fabricsm/ib", "fabricsm/topospec/approval", "api/v1", "api/store", "api/refusal", "api/audit", "api/events", "api/adoption", "api/admission",
			"api/inventory", "api/hostrecord", "api/tenancy", "api/fabric/records",
		},
		not: []string{"net/http", "portcullis/fabricsm/sm"},
		why: "memberships are kept through the ledger, and not through the Subnet Manager",
	},
	{
		from: "api/rehearsal",
		may:  []string{"fabricsm/vault", "fabricsm/vault/escrow", "api/v1", "api/store", "api/audit", "api/refusal"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "a rehearsal is recorded of a proof, and no kit is opened by the service",
	},
	{
		from: "api/receipt",
		may:  []string{"fabricsm/ib", "attest", "attest/result", "api/v1", "api/strictjson"},
		not:  []string{"net", "os", "log", "context", "portcullis/fabricsm/sm"},
		why:  "a receipt is verified with a key and a time alone, without what made it",
	},
	{
		from: "api/receiptlog",
		may:  []string{"api/receipt", "api/store", "api/review", "api/audit", "api/refusal"},
		not:  []string{"net", "os", "log"},
		why:  "the log of receipts is made of the store alone",
	},
	{
		from: "api/inventory/layout",
		may:  []string{"fabricsm/ib", "api/v1", "api/store", "api/page", "api/refusal", "api/inventory"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "what stands where is read from the inventory alone",
	},
	{
		from: "api/lifecycle",
		not:  []string{"net", "os", "log", "context", "time"},
		why:  "the life of a host is one table of values",
	},
	{
		from: "api/tracecontext",
		not:  []string{"os", "log", "time"},
		why:  "which trace a request is part of is read from its header alone",
	},
	{
		from: "api/trace",
		may:  []string{"attest", "fabricsm/ib", "api/v1", "api/hostrecord", "api/fabric/records", "api/tracecontext"},
		not:  []string{"net", "os", "log", "context", "go.opentelemetry.io", "portcullis/api/store", "portcullis/fabricsm/sm"},
		why:  "spans are made of records, without clock, I/O and the SDK",
	},
	{
		from: "api/trace/otlp",
		may:  []string{"fabricsm/ib", "api/trace", "api/tracecontext", "api/outgoing"},
		not:  []string{"os", "portcullis/fabricsm/sm"},
		why:  "what sends traces knows no records",
	},
	{
		from: "api/hostrecord",
		may:  []string{"attest", "fabricsm/ib", "api/v1", "api/store", "api/ifmatch", "api/lifecycle", "api/fabric/records", "api/tracecontext"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "what is on record of a host is the same whichever part writes it",
	},
	{
		from: "api/attestation/session",
		may:  []string{"attest", "fabricsm/ib", "api/store", "api/refusal", "fabricsm/vault"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "a session is a token, whatever its evidence shows",
	},
	{
		from: "api/attestation",
		may:  []string{"attest", "fabricsm/ib", "api/v1", "api/store", "api/limit", "api/refusal", "api/inventory", "api/hostrecord", "api/lifecycle", "api/audit", "api/events", "api/tenancy", "api/tracecontext", "api/fabric/records", "fabricsm/vault"},
		not:  []string{"net/http", "portcullis/fabricsm/sm"},
		why:  "attestation knows no HTTP, and asks who decides about hosts by an interface",
	},
	{
		from: "api/admission",
		may:  []string{"attest", "fabricsm/ib", "api/v1", "api/store", "api/limit", "api/page", "api/reason", "api/refusal", "api/inventory", "api/label", "api/hostlabel", "api/hostrecord", "api/lifecycle", "api/attestation", "api/audit", "api/events", "api/review", "api/tenancy", "api/tracecontext", "api/fabric/records", "api/isolation/outsiders", "fabricsm/vault", "fabricsm/topospec/approval"},
		not: []string{
			"net/http", "github.com/go-chi/chi", "github.com/danielgtaylor/huma",
			"portcullis/fabricsm/sm", "portcullis/fabricsm/driver", "portcullis/fabricsm/mad",
		},
		why: "admission knows no HTTP and no Subnet Manager",
	},
	{
		from: "api",
		may:  []string{"attest", "firmware", "fabricsm"},
		not:  []string{"portcullis/fabricsm/mad"},
		why:  "the service knows no MAD",
	},
	{
		from: "cmd/portcullis-sim/drills",
		may:  []string{"api", "attest", "firmware", "fabricsm", "agent/hca", "agent/lock", "cmd/portcullisd/posture"},
		not:  []string{"portcullis/fabricsm/mad"},
		why:  "drills play the service, and what its agents do with adapters",
	},
	{from: "packaging/image", may: []string{"agent", "attest", "fabricsm/strictyaml"}, why: "the image's builder reads the agent's configuration and predicts what its image is measured to"},
	{from: "packaging", why: "packaging imports nothing"},
	{
		from: "packaging/image",
		may:  []string{"agent", "attest", "fabricsm/strictyaml"},
		why:  "the builder of images checks the agent's configuration and computes reference values",
	},
	{from: "cmd", may: []string{""}, why: "programs put everything together"},
}
